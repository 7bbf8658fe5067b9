//! Ordered map with string keys. The map of the interpreter is unordered, and an expression must have the same result for the
//! same object every time.

use std::any::Any;
use std::sync::Arc;

use cel::ExecutionError;
use cel::common::traits::{Container, Indexer, Iterable, Iterator as Cursor, Sizer, Zeroer};
use cel::common::types::{CelInt, CelMap, CelMapKey, CelString, MAP_TYPE, Type};
use cel::common::value::{CowVal, StaticVal, Val};

/// Fields of an object, or entries of a map.
#[derive(Debug, Clone)]
pub struct Fields(Arc<Vec<(CelString<'static>, Box<dyn Val>)>>);

impl Fields {
    /// Creates a map with these entries, whose keys are unique.
    pub fn new(entries: impl IntoIterator<Item = (String, Box<dyn Val>)>) -> Self {
        let mut entries: Vec<_> = entries
            .into_iter()
            .map(|(key, value)| (CelString::from(key), value))
            .collect();
        entries.sort_by(|(one, _), (other, _)| one.inner().cmp(other.inner()));
        Self(Arc::new(entries))
    }

    /// The entries, in the order of their keys.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &(dyn Val + 'static))> {
        self.0.iter().map(|(key, value)| (key.inner(), value.as_ref()))
    }

    fn find(&self, key: &str) -> Option<&(dyn Val + 'static)> {
        let found = self.0.binary_search_by(|(known, _)| known.inner().cmp(key));
        found.ok().map(|at| self.0[at].1.as_ref())
    }
}

impl Val for Fields {
    fn get_type(&self) -> &Type {
        &MAP_TYPE
    }

    fn cel_type() -> &'static Type {
        &MAP_TYPE
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        if let Some(other) = other.downcast_ref::<Self>() {
            return self.0.len() == other.0.len()
                && self
                    .0
                    .iter()
                    .zip(other.0.iter())
                    .all(|((one, value), (another, with))| one == another && value.equals(with.as_ref()));
        }
        other.downcast_ref::<CelMap>().is_some_and(|other| {
            self.0.len() == other.len()
                && self.0.iter().all(|(key, value)| {
                    let found = other.inner().get(&CelMapKey::from(key.inner()));
                    found.is_some_and(|with| value.equals(with.as_ref()))
                })
        })
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Fields {}

impl Container for Fields {
    fn contains(&self, value: &dyn Val) -> Result<bool, ExecutionError> {
        let key = value.downcast_ref::<CelString>();
        Ok(key.is_some_and(|key| self.find(key.inner()).is_some()))
    }
}

impl Indexer for Fields {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let key = index.downcast_ref::<CelString>().map(CelString::inner);
        match key.and_then(|key| self.find(key)) {
            Some(value) => Ok(CowVal::Borrowed(value)),
            None => Err(ExecutionError::no_such_key(key.unwrap_or_default())),
        }
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
    }
}

impl Iterable for Fields {
    fn iter<'b, 'v>(&'b self) -> Box<dyn Cursor<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Keys(self.0.iter()))
    }
}

struct Keys<'b>(std::slice::Iter<'b, (CelString<'static>, Box<dyn Val>)>);

impl<'b, 'v> Cursor<'b, 'v> for Keys<'b> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        self.0.next().map(|(key, _)| key as &dyn Val)
    }
}

impl Sizer for Fields {
    fn size(&self) -> CelInt {
        i64::try_from(self.0.len()).unwrap_or(i64::MAX).into()
    }
}

impl Zeroer for Fields {
    fn is_zero_value(&self) -> bool {
        self.0.is_empty()
    }
}
