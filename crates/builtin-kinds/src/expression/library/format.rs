//! Named formats: `format.dns1123Label().validate('a-b')`, none if the text has the format, else what is wrong with it.
//!
//! Source: apiserver `pkg/cel/library/format.go`.

use apimachinery::Version;
use cel::common::types::{CelList, CelOptional, CelString};
use cel::common::value::{CowVal, Val};
use cel::{Env, ExecutionError};

use super::{Declared, Result_, opaque, url};
use crate::crd::formats;
use crate::{naming, validation};

/// A format, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Format(&'static str);

opaque!(Format, "kubernetes.NamedFormat", FORMAT);

/// All of them.
const NAMES: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

/// The functions of a format without arguments, one for each name: the interpreter takes no closures.
const CONSTANTS: [cel::common::functions::Function; NAMES.len()] = [
    constant::<0>,
    constant::<1>,
    constant::<2>,
    constant::<3>,
    constant::<4>,
    constant::<5>,
    constant::<6>,
    constant::<7>,
    constant::<8>,
    constant::<9>,
    constant::<10>,
    constant::<11>,
    constant::<12>,
];

pub(super) fn declare(env: &mut Env) -> Declared {
    env.add_type(FORMAT.to_owned())?;
    for (name, function) in NAMES.iter().zip(CONSTANTS) {
        let name = format!("format.{name}");
        env.add_overload(&name, &format!("{name}()"), vec![], function)?;
    }
    cel::add_overload!(env, fn named: (CelString) -> CelOptional, name = "format.named")?;
    cel::add_member_overload!(env, fn validate: (Format, CelString) -> CelOptional)
}

/// Is this a function of formats?
pub(in crate::expression) fn is_format(function: &str) -> bool {
    let name = function.strip_prefix("format.");
    name.is_some_and(|name| NAMES.contains(&name))
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of functions")]
fn constant<'b, 'v, const NTH: usize>(_none: Vec<CowVal<'b, 'v>>) -> Result_<'b, 'v> {
    Ok::<_, ExecutionError>(CowVal::owned(Format(NAMES[NTH])))
}

fn named(name: &CelString<'_>) -> CelOptional<'static> {
    let known = NAMES.iter().find(|known| **known == name.inner());
    known.map_or_else(CelOptional::none, |name| CelOptional::of(Box::new(Format(name))))
}

fn validate(format: &Format, text: &CelString<'_>) -> CelOptional<'static> {
    let errors = errors(format.0, text.inner());
    if errors.is_empty() {
        return CelOptional::none();
    }
    let errors = errors
        .into_iter()
        .map(|error| Box::new(CelString::from(error)) as Box<dyn Val>);
    CelOptional::of(Box::new(CelList::from(errors.collect::<Vec<_>>())))
}

fn errors(format: &str, text: &str) -> Vec<String> {
    let fits = |format: &str, why: &str| match formats::fits(format, text) {
        true => Vec::new(),
        false => vec![why.to_owned()],
    };
    match format {
        "dns1123Label" => naming::label(text),
        "dns1123Subdomain" => naming::subdomain(text),
        "dns1035Label" => naming::dns1035_label(text),
        "dns1123LabelPrefix" => naming::label(&whole(text)),
        "dns1123SubdomainPrefix" => naming::subdomain(&whole(text)),
        "dns1035LabelPrefix" => naming::dns1035_label(&whole(text)),
        "qualifiedName" => validation::qualified_name(text, Version::V1_36),
        "labelValue" => validation::label_value(text, Version::V1_36),
        "uri" => match url::read(text).is_some() {
            true => Vec::new(),
            false => vec![format!("parse {text:?}: invalid URI for request")],
        },
        "uuid" => fits("uuid", "does not match the UUID format"),
        "byte" => fits("byte", "invalid base64"),
        "date" => fits("date", "invalid date"),
        _ => fits("datetime", "invalid datetime"),
    }
}

/// A prefix may end with `-`, because something follows it (`maskTrailingDash`).
fn whole(prefix: &str) -> String {
    let mut rest = prefix.chars();
    match (rest.next_back(), rest.next_back()) {
        (Some('-'), Some(_)) => format!("{}a", rest.as_str()),
        (_, _) => prefix.to_owned(),
    }
}
