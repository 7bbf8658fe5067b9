//! The rules of `data/validation.yaml`, and the walk through an object that applies them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;

use super::context::FieldContext;
use super::formats::{self, Format};
use super::{
    amounts, autoscaling, network, objects, placement, pods, policies, status, volumes, webhooks, workloads,
};
use crate::error_list::ErrorList;
use crate::fields::below;
use crate::types::{Struct, Type};

/// Validates a struct and everything below it.
pub(super) fn check(known: &'static Struct, context: &FieldContext<'_>, errors: &mut ErrorList) {
    let mut context = *context;
    if known.name == "core/v1.PodSpec" {
        context.pod = context.value;
    }
    check_by(known.name, known, &context, errors);
}

fn check_by(name: &str, known: &'static Struct, context: &FieldContext<'_>, errors: &mut ErrorList) {
    for rule in rules().get(name).into_iter().flatten() {
        rule.apply(known, context, errors);
    }
}

fn rules() -> &'static BTreeMap<String, Vec<Rule>> {
    static RULES: OnceLock<BTreeMap<String, Vec<Rule>>> = OnceLock::new();
    RULES.get_or_init(|| {
        serde_saphyr::from_str(include_str!("../../data/validation.yaml"))
            .expect("the table of rules is YAML of this form, as a test sees")
    })
}

/// A rule of the table, whose header describes the keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(default)]
    field: String,
    shown: Option<String>,
    required: Option<Required>,
    #[serde(default)]
    is: Vec<Format>,
    #[serde(default)]
    one_of: Vec<String>,
    #[serde(default)]
    unique: bool,
    at_most: Option<AtMost>,
    then: Option<String>,
    check: Option<Check>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Required {
    Plainly(bool),
    Because(String),
}

/// Another field of the same struct that must not be less, and the error text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AtMost {
    field: String,
    why: String,
}

impl Rule {
    fn apply(&self, known: &'static Struct, context: &FieldContext<'_>, errors: &mut ErrorList) {
        if let Some(check) = self.check {
            return check.run(context, errors);
        }
        let value = below(context.value, &self.field);
        let path = context.at(self.shown.as_ref().unwrap_or(&self.field));
        let empty_allowed = value.is_string() && self.is.iter().any(|format| format.takes_empty());
        if is_empty(value) && !empty_allowed {
            match &self.required {
                None | Some(Required::Plainly(false)) => {}
                Some(Required::Plainly(true)) => errors.required(&path, ""),
                Some(Required::Because(why)) => errors.required(&path, why),
            }
        } else if !(value == 0 && self.required.is_some()) {
            self.check_value(value, &path, context, errors);
        } else {
            errors.required(&path, "");
        }
        self.check_below(known, value, &path, context, errors);
    }

    fn check_value(&self, value: &Value, path: &str, context: &FieldContext<'_>, errors: &mut ErrorList) {
        let one = |value: &Value, path: &str, errors: &mut ErrorList| {
            for format in &self.is {
                formats::check(*format, value, path, context.version, errors);
            }
            let known: Vec<&str> = self.one_of.iter().map(String::as_str).collect();
            let fits = value.as_str().is_some_and(|text| known.contains(&text));
            if !known.is_empty() && !fits {
                errors.unsupported(path, value, &known);
            }
        };
        if let Some(items) = value.as_array() {
            for (nth, item) in items.iter().enumerate() {
                one(item, &format!("{path}[{nth}]"), errors);
            }
        } else {
            one(value, path, errors);
        }
        if let Some(AtMost { field, why }) = &self.at_most
            && value.as_i64() > Some(below(context.value, field).as_i64().unwrap_or_default())
        {
            errors.invalid(path, value, why);
        }
        if self.unique && context.repeats(&[&self.field]) {
            errors.duplicate(path, value, "");
        }
    }

    /// Validates the structs in a field.
    fn check_below(
        &self,
        known: &'static Struct,
        value: &Value,
        path: &str,
        context: &FieldContext<'_>,
        errors: &mut ErrorList,
    ) {
        let Some(of) = type_of(known, &self.field) else {
            return;
        };
        let into = |of: &'static Struct, inner: &FieldContext<'_>, errors: &mut ErrorList| {
            check(of, inner, errors);
            if let Some(then) = &self.then {
                check_by(then, of, inner, errors);
            }
        };
        match (of.as_struct(), of.items().and_then(Type::as_struct)) {
            // A struct that is not a pointer exists even if the field is absent.
            (Some(inner), _) if value.is_object() || !of.is_pointer() => {
                let alone = FieldContext {
                    value,
                    path,
                    list: &[],
                    nth: 0,
                    ..*context
                };
                into(inner, &alone, errors);
            }
            (_, Some(inner)) => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                for (nth, item) in items.iter().enumerate() {
                    let of_list = FieldContext {
                        value: item,
                        path: &format!("{path}[{nth}]"),
                        list: items,
                        nth,
                        ..*context
                    };
                    into(inner, &of_list, errors);
                }
            }
            (_, _) => {}
        }
    }
}

fn type_of(known: &'static Struct, field: &str) -> Option<&'static Type> {
    match field.split_once('.') {
        None => known.field(field).map(|field| &field.holds),
        Some((first, rest)) => type_of(known.field(first)?.holds.as_struct()?, rest),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// Declares the checks by their names in the table.
macro_rules! checks {
    ($($word:ident => $function:path,)+) => {
        /// Checks over several fields.
        #[derive(Debug, Clone, Copy, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[expect(non_camel_case_types, reason = "they are the words of the table")]
        enum Check {
            $($word,)+
        }

        impl Check {
            fn run(self, context: &FieldContext<'_>, errors: &mut ErrorList) {
                match self {
                    $(Self::$word => $function(context, errors),)+
                }
            }
        }
    };
}

checks! {
    images => pods::images,
    host_ports => pods::host_ports,
    host_network => pods::host_network,
    shared_processes => pods::shared_processes,
    dns_config => pods::dns_config,
    volume_source => volumes::volume_source,
    resources => pods::resources,
    liveness => pods::liveness,
    init_container => pods::init_container,
    ephemeral_container => pods::ephemeral_container,
    host_name => pods::host_name,
    sysctls => pods::sysctls,
    balancer => network::balancer,
    balanced_host => network::balanced_host,
    host_port => pods::host_port,
    value_source => pods::value_source,
    field_path => pods::field_path,
    variables_source => pods::variables_source,
    mount => pods::mount,
    handler => pods::handler,
    scheduling_gate => placement::scheduling_gate,
    spread_once => placement::spread_once,
    toleration => placement::toleration,
    node_requirement => placement::node_requirement,
    topology_key => placement::topology_key,
    requirement => workloads::requirement,
    selected_template => workloads::selected_template,
    deployment_strategy => workloads::deployment_strategy,
    progress_deadline => workloads::progress_deadline,
    set_policies => workloads::set_policies,
    daemon_strategy => workloads::daemon_strategy,
    job_selector => workloads::job_selector,
    job_indexes => workloads::job_indexes,
    job_restarts => workloads::job_restarts,
    budget => workloads::budget,
    target_version => autoscaling::target_version,
    replica_range => workloads::replica_range,
    service_addresses => network::service_addresses,
    cluster_ips => network::cluster_ips,
    service_types => network::service_types,
    service_port => network::service_port,
    routed => network::routed,
    ingress_path => network::ingress_path,
    backend => network::backend,
    peer => network::peer,
    policy_port => network::policy_port,
    controller => network::controller,
    endpoint => network::endpoint,
    subset => network::subset,
    config_map => objects::config_map,
    secret => objects::secret,
    policy_rule => objects::policy_rule,
    role_ref => objects::role_ref,
    subject => objects::subject,
    claim => volumes::claim,
    taints => objects::taints,
    event => objects::event,
    priority => objects::priority,
    limit => amounts::limit,
    quota => amounts::quota,
    access_modes => volumes::access_modes,
    capacity => volumes::capacity,
    lasting_source => volumes::lasting_source,
    readiness => pods::readiness,
    resource_field => pods::resource_field,
    metric => autoscaling::metric,
    pace => autoscaling::pace,
    step => autoscaling::step,
    webhook_name => webhooks::webhook_name,
    webhook_rule => webhooks::webhook_rule,
    webhook_call => webhooks::webhook_call,
    param_kind => policies::param_kind,
    named_rule => policies::named_rule,
    policy_binding => policies::policy_binding,
    validation_actions => policies::validation_actions,
    condition_type => status::condition_type,
    addresses => status::addresses,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types;

    #[test]
    fn every_rule_names_an_existing_field() {
        for (name, of) in rules() {
            // Rule lists that only other lists refer to have no type name.
            let Some(known) = name.contains('/').then(|| types::named(name)) else {
                continue;
            };
            let known = known.unwrap_or_else(|| panic!("there is no struct {name}"));
            for rule in of {
                assert_ne!(rule.check.is_some(), !rule.field.is_empty(), "{name}: {rule:?}");
                if !rule.field.is_empty() {
                    assert!(
                        type_of(known, &rule.field).is_some(),
                        "{name} has no {}",
                        rule.field
                    );
                }
                if let Some(then) = &rule.then {
                    assert!(rules().contains_key(then), "{then} is named and not there");
                }
            }
        }
    }
}
