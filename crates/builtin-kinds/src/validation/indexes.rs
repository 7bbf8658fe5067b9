//! Index of list items by some of their fields: one pass over a list instead of comparing each item with all others.
//!
//! It must not know the meaning of the fields.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::fields::below;
use serde_json::Value;

/// Address of a list, and the fields of its index.
type ListAndFields = (*const Value, String);

/// First and last item by values.
type Places = HashMap<Vec<Value>, (usize, usize)>;

/// Indexes of the lists of one object, built on first use.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    known: RefCell<HashMap<ListAndFields, Places>>,
}

impl Indexes {
    /// Returns the indices of the first and last item of `list` that has `values` in `fields`.
    pub(super) fn find(&self, list: &[Value], fields: &[&str], values: Vec<Value>) -> Option<(usize, usize)> {
        if list.is_empty() {
            return None;
        }
        let mut known = self.known.borrow_mut();
        let places = known.entry((list.as_ptr(), fields.join(","))).or_insert_with(|| {
            let mut places = Places::new();
            for (nth, item) in list.iter().enumerate() {
                let values = fields.iter().map(|field| below(item, field).clone()).collect();
                places.entry(values).or_insert((nth, nth)).1 = nth;
            }
            places
        });
        places.get(&values).copied()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn first_and_last_of_equal_items_are_found() {
        let object = json!({ "items": [{ "a": { "b": 1 } }, { "a": { "b": 2 } }, { "a": { "b": 1 } }, {}] });
        let list = object["items"].as_array().expect("a list");
        let indexes = Indexes::default();
        let find = |value: Value| indexes.find(list, &["a.b"], vec![value]);
        assert_eq!(find(json!(1)), Some((0, 2)));
        assert_eq!(find(json!(2)), Some((1, 1)));
        assert_eq!(find(json!(3)), None);
        assert_eq!(find(json!(null)), Some((3, 3)));
    }
}
