//! Named formats: `format.dns1123Label().validate('a-b')`, none if the text has the format, else what is wrong with it.
//!
//! Source: apiserver `pkg/cel/library/format.go`.

use apimachinery::Version;

use super::{Function, Outcome, opaque, url};
use crate::crd::formats;
use crate::expression::Failure;
use crate::expression::meter::Meter;
use crate::expression::value::Value;
use crate::{naming, validation};

/// A format, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Format(&'static str);

opaque!(Format, "kubernetes.NamedFormat");

/// All of them, and the size of the pattern that a server charges.
const FORMATS: [(&str, u64); 13] = [
    ("dns1123Label", 30),
    ("dns1123Subdomain", 60),
    ("dns1035Label", 30),
    ("qualifiedName", 60),
    ("dns1123LabelPrefix", 30),
    ("dns1123SubdomainPrefix", 60),
    ("dns1035LabelPrefix", 30),
    ("labelValue", 40),
    ("uri", 1103),
    ("uuid", 70),
    ("byte", 84),
    ("date", 71),
    ("datetime", 71),
];

pub(super) fn find(name: &str, on_target: bool, args: usize) -> Option<Function> {
    /// The functions without arguments, one for each format: a function has no state.
    const CONSTANTS: [Function; FORMATS.len()] = [
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
    match (name, on_target, args) {
        ("format.named", false, 1) => Some(named),
        ("validate", true, 1) => Some(validate),
        (name, false, 0) => {
            let name = name.strip_prefix("format.")?;
            let nth = FORMATS.iter().position(|(known, _)| *known == name)?;
            Some(CONSTANTS[nth])
        }
        (_, _, _) => None,
    }
}

/// Is this a function of formats?
pub(in crate::expression) fn is_format(function: &str) -> bool {
    let name = function.strip_prefix("format.");
    name.is_some_and(|name| FORMATS.iter().any(|(known, _)| *known == name))
}

fn constant<const NTH: usize>(meter: &mut Meter, _args: &[Value]) -> Outcome {
    meter.charge(1)?;
    Ok(Value::opaque(Format(FORMATS[NTH].0)))
}

fn named(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    let [Value::Text(name)] = args else {
        return Err(Failure::Overload);
    };
    let known = FORMATS.iter().find(|(known, _)| *known == name.as_str());
    Ok(Value::optional(
        known.map(|(name, _)| Value::opaque(Format(name))),
    ))
}

fn validate(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [format, value @ Value::Text(text)] = args else {
        return Err(Failure::Overload);
    };
    let Format(name) = format.downcast().ok_or(Failure::Overload)?;
    let size = FORMATS
        .iter()
        .find(|(known, _)| known == name)
        .map_or(0, |(_, size)| *size);
    meter.charge((value.size() + 1).div_ceil(10).saturating_mul(size.div_ceil(4)))?;
    meter.allocate(text.as_str().len().saturating_mul(8))?;
    let errors = errors(name, text.as_str());
    if errors.is_empty() {
        return Ok(Value::Optional(None));
    }
    let errors = errors.into_iter().map(Value::text);
    Ok(Value::optional(Some(Value::list(errors.collect()))))
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
