//! The variables of a policy: each is evaluated when it is first used, and once.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Compiled;
use crate::expression::{Failure, Meter, Opaque, Value};

/// The value `variables`.
#[derive(Debug, Clone)]
pub(super) struct Variables(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    expressions: Arc<[(String, Compiled)]>,
    /// What the expressions refer to beside each other.
    known: Arc<[(&'static str, Value)]>,
    values: Mutex<BTreeMap<String, Result<Value, String>>>,
}

impl Variables {
    pub(super) fn new(expressions: Arc<[(String, Compiled)]>, known: Arc<[(&'static str, Value)]>) -> Self {
        Self(Arc::new(Inner {
            expressions,
            known,
            values: Mutex::default(),
        }))
    }

    /// Returns a variable; `None`: there is no such variable.
    fn value(&self, name: &str, meter: &mut Meter) -> Option<Result<Value, Failure>> {
        let values = || self.0.values.lock().unwrap_or_else(PoisonError::into_inner);
        let known = values().get(name).cloned();
        let value = match known {
            Some(value) => value,
            None => {
                let (_, expression) = self.0.expressions.iter().find(|(known, _)| known == name)?;
                let value = match self.evaluated(expression, meter) {
                    Ok(value) => value,
                    Err(failure) => return Some(Err(failure)),
                };
                values().insert(name.to_owned(), value.clone());
                value
            }
        };
        Some(value.map_err(|error| {
            Failure::Error(format!(
                "composited variable \"{name}\" fails to evaluate: {error}"
            ))
        }))
    }

    fn evaluated(&self, expression: &Compiled, meter: &mut Meter) -> Result<Result<Value, String>, Failure> {
        let mut own = meter.within()?;
        let mut all = self.0.known.to_vec();
        all.push(("variables", Value::Opaque(Arc::new(self.clone()))));
        let value = expression.metered(&all, &mut own);
        meter.absorb(&own);
        Ok(value.map_err(|failure| failure.to_string()))
    }
}

impl Opaque for Variables {
    fn type_name(&self) -> &str {
        "map"
    }

    fn equals(&self, _other: &dyn Opaque) -> bool {
        false
    }

    fn field(&self, name: &str, meter: &mut Meter) -> Option<Result<Value, Failure>> {
        self.value(name, meter)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
