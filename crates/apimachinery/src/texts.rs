//! Several short texts in one allocation: the labels of an object, or the values of its field selectors.
//!
//! A store holds hundreds of thousands of these, and a map of strings takes more memory than the strings.

/// Texts in insertion order.
#[derive(Debug, Default)]
pub(super) struct Texts {
    joined: Box<str>,
    /// End offset of each text.
    ends: Box<[u32]>,
}

impl Texts {
    /// Returns text number `index`.
    pub(super) fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)? as usize;
        let start = match index.checked_sub(1) {
            None => 0,
            Some(before) => self.ends[before] as usize,
        };
        Some(&self.joined[start..end])
    }

    /// Returns all texts.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).filter_map(|index| self.get(index))
    }
}

impl<T: AsRef<str>> FromIterator<T> for Texts {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let (mut joined, mut ends) = (String::new(), Vec::new());
        for text in texts {
            joined.push_str(text.as_ref());
            ends.push(u32::try_from(joined.len()).expect("an object is smaller than 4 GiB"));
        }
        Self {
            joined: joined.into_boxed_str(),
            ends: ends.into_boxed_slice(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Texts;

    #[test]
    fn texts_keep_their_order() {
        let texts: Texts = ["a", "", "grün", ""].into_iter().collect();
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["a", "", "grün", ""]);
        assert_eq!((texts.get(2), texts.get(4)), (Some("grün"), None));
        assert_eq!(Texts::default().get(0), None);
    }
}
