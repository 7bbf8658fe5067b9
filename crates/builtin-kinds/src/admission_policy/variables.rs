//! The variables of a policy: each is evaluated when it is first used, and once.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cel::ExecutionError;
use cel::common::traits::Indexer;
use cel::common::types::{CelString, MAP_TYPE, Type};
use cel::common::value::{CowVal, StaticVal, Val};

use super::Compiled;
use crate::expression::Object;

/// The value `variables`.
#[derive(Debug, Clone)]
pub(super) struct Variables(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    expressions: Arc<[(String, Compiled)]>,
    /// What the expressions refer to beside each other.
    known: Arc<[(&'static str, Object)]>,
    size: usize,
    values: Mutex<BTreeMap<String, Result<Object, String>>>,
}

impl Variables {
    pub(super) fn new(
        expressions: Arc<[(String, Compiled)]>,
        known: Arc<[(&'static str, Object)]>,
        size: usize,
    ) -> Self {
        Self(Arc::new(Inner {
            expressions,
            known,
            size,
            values: Mutex::default(),
        }))
    }

    fn value(&self, name: &str) -> Result<Object, ExecutionError> {
        let values = || self.0.values.lock().unwrap_or_else(PoisonError::into_inner);
        let known = values().get(name).cloned();
        let value = match known {
            Some(value) => value,
            None => {
                let value = self.evaluated(name)?;
                values().insert(name.to_owned(), value.clone());
                value
            }
        };
        value.map_err(|error| {
            let message = format!("composited variable \"{name}\" fails to evaluate: {error}");
            ExecutionError::function_error("variables", message)
        })
    }

    fn evaluated(&self, name: &str) -> Result<Result<Object, String>, ExecutionError> {
        let Inner {
            expressions,
            known,
            size,
            ..
        } = &*self.0;
        let at = expressions.iter().position(|(known, _)| known == name);
        let Some(at) = at else {
            return Err(ExecutionError::no_such_key(name));
        };
        let variables: Object = Box::new(self.clone());
        let all = known.iter().cloned().chain([("variables", variables)]);
        let value = expressions[at].1.value(all, *size, &mut 0);
        Ok(value.map_err(|failure| failure.to_string()))
    }
}

impl Val for Variables {
    fn get_type(&self) -> &Type {
        &MAP_TYPE
    }

    fn cel_type() -> &'static Type {
        &MAP_TYPE
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Variables {}

impl Indexer for Variables {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let name = index.downcast_ref::<CelString>().map(CelString::inner);
        self.value(name.unwrap_or_default()).map(CowVal::Owned)
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
    }
}
