//! Style of a string: plain if possible, otherwise quoted or literal.
//!
//! Source: `yaml_emitter_analyze_scalar` and `yaml_emitter_select_scalar_style` in `emitterc.go`.

use super::plain;

/// Style of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

impl Scalar {
    /// Returns the style of `text`.
    pub(super) fn of(text: &str, is_key: bool) -> Self {
        let found = Found::in_text(text);
        if text.contains('\n') {
            let literal = !is_key && !found.special && !found.space_break && !text.ends_with(' ');
            return if literal {
                Self::Literal
            } else {
                Self::DoubleQuoted
            };
        }
        if plain::means_something_else(text) {
            return Self::DoubleQuoted;
        }
        if found.special || found.break_ {
            // No other style keeps a line break other than a newline.
            Self::DoubleQuoted
        } else if found.indicator || text.starts_with(' ') || text.ends_with(' ') {
            Self::SingleQuoted
        } else {
            Self::Plain
        }
    }
}

/// Properties of a string that exclude styles.
#[derive(Debug, Default)]
struct Found {
    /// A YAML indicator at a position where it is one.
    indicator: bool,
    /// An unprintable character.
    special: bool,
    /// A line break.
    break_: bool,
    /// A space before a line break.
    space_break: bool,
}

impl Found {
    fn in_text(text: &str) -> Self {
        let mut found = Self {
            indicator: text.starts_with("---") || text.starts_with("..."),
            ..Self::default()
        };
        let mut after_blank = true;
        let mut characters = text.chars().peekable();
        let mut first = true;
        while let Some(character) = characters.next() {
            let before_blank = characters.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
            found.indicator |= match character {
                '#' => first || after_blank,
                ':' => before_blank,
                '?' | '-' => first && before_blank,
                ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => {
                    first
                }
                _ => false,
            };
            found.special |= !is_printable(character);
            let breaks = is_break(character);
            found.break_ |= breaks;
            found.space_break |= character == ' ' && characters.peek().is_some_and(|next| is_break(*next));
            after_blank = matches!(character, ' ' | '\t') || breaks;
            first = false;
        }
        found
    }
}

/// Returns the escape of a character between double quotes, if it needs one.
pub(super) fn escape(character: char) -> Option<String> {
    let short = match character {
        '\0' => '0',
        '\x07' => 'a',
        '\x08' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\x0b' => 'v',
        '\x0c' => 'f',
        '\r' => 'r',
        '\x1b' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ if is_printable(character) => return None,
        _ => {
            let code = u32::from(character);
            return Some(match code {
                ..=0xFF => format!("\\x{code:02X}"),
                0x100..=0xFFFF => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            });
        }
    };
    Some(format!("\\{short}"))
}

fn is_break(character: char) -> bool {
    matches!(character, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Only in the basic plane: the emitter escapes all others.
fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FEFE}' | '\u{FF00}'..='\u{FFFD}')
}
