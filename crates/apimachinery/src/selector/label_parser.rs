//! Lexer and parser of label selectors (apimachinery `labels/selector.go`), with the error messages of kube-apiserver.

use super::{Operator, Requirement};
use crate::go_text::quote;
use crate::names::{LABEL_MAX, has_word_form, is_subdomain};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Comma,
    Open,
    Close,
    Not,
    Equals,
    NotEquals,
    Greater,
    Less,
    In,
    NotIn,
    Word,
    End,
}

/// Parses a selector into its requirements. The error is the message of kube-apiserver.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = Parser {
        tokens: lex(text),
        at: 0,
    };
    let mut requirements = Vec::new();
    loop {
        match parser.peek(true) {
            (Token::Word | Token::Not, _) => {
                let requirement = parser
                    .requirement()
                    .map_err(|message| format!("unable to parse requirement: {message}"))?;
                requirements.push(requirement);
                match parser.next(true) {
                    (Token::End, _) => break,
                    (Token::Comma, _) => {
                        let (token, literal) = parser.peek(true);
                        if !matches!(token, Token::Word | Token::Not) {
                            return Err(format!("found '{literal}', expected: identifier after ','"));
                        }
                    }
                    (_, literal) => {
                        return Err(format!("found '{literal}', expected: ',' or 'end of string'"));
                    }
                }
            }
            (Token::End, _) => break,
            (_, literal) => {
                return Err(format!(
                    "found '{literal}', expected: !, identifier, or 'end of string'"
                ));
            }
        }
    }
    Ok(requirements)
}

struct Parser<'a> {
    tokens: Vec<(Token, &'a str)>,
    at: usize,
}

impl<'a> Parser<'a> {
    /// Returns the next token. Where values are expected (`values`), `in` and `notin` are values too.
    fn peek(&self, values: bool) -> (Token, &'a str) {
        let (token, literal) = self.tokens.get(self.at).copied().unwrap_or((Token::End, ""));
        let word = values && matches!(token, Token::In | Token::NotIn);
        (if word { Token::Word } else { token }, literal)
    }

    fn next(&mut self, values: bool) -> (Token, &'a str) {
        let next = self.peek(values);
        self.at += 1;
        next
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.peek(true).0 == Token::Not;
        if negated {
            self.next(true);
        }
        let (token, key) = self.next(true);
        if token != Token::Word {
            return Err(format!("found '{key}', expected: identifier"));
        }
        check_key(key)?;
        let key = key.to_owned();
        if negated {
            return Ok(Requirement {
                key,
                operator: Operator::Absent,
            });
        }
        if matches!(self.peek(true).0, Token::End | Token::Comma) {
            return Ok(Requirement {
                key,
                operator: Operator::Exists,
            });
        }
        let (token, literal) = self.next(false);
        let operator = match token {
            Token::In => Operator::In(self.set()?),
            Token::NotIn => Operator::NotIn(self.set()?),
            Token::Equals => Operator::In(vec![self.value()?]),
            Token::NotEquals => Operator::NotIn(vec![self.value()?]),
            Token::Greater => Operator::Greater(self.number()?),
            Token::Less => Operator::Less(self.number()?),
            Token::Comma | Token::Open | Token::Close | Token::Not | Token::Word | Token::End => {
                return Err(format!(
                    "found '{literal}', expected: in, notin, =, ==, !=, gt, lt"
                ));
            }
        };
        let values = match &operator {
            Operator::In(values) | Operator::NotIn(values) => values.as_slice(),
            Operator::Exists | Operator::Absent | Operator::Greater(_) | Operator::Less(_) => &[],
        };
        for (index, value) in values.iter().enumerate() {
            check_value(&key, index, value)?;
        }
        Ok(Requirement { key, operator })
    }

    /// Parses the value after `=`, which may be missing (empty).
    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek(true).0, Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match self.next(true) {
            (Token::Word, value) => Ok(value.to_owned()),
            (_, literal) => Err(format!("found '{literal}', expected: identifier")),
        }
    }

    fn number(&mut self) -> Result<i64, String> {
        let value = self.value()?;
        value.parse().map_err(|_| {
            format!(
                "values[0]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be an integer",
                quote(&value)
            )
        })
    }

    fn set(&mut self) -> Result<Vec<String>, String> {
        let (token, literal) = self.next(true);
        if token != Token::Open {
            return Err(format!("found '{literal}' expected: '('"));
        }
        let mut values = Vec::new();
        match self.peek(true) {
            (Token::Word | Token::Comma, _) => self.words(&mut values)?,
            (Token::Close, _) => {
                self.next(true);
                return Ok(vec![String::new()]);
            }
            (_, literal) => return Err(format!("found '{literal}', expected: ',', ')' or identifier")),
        }
        let (token, literal) = self.next(true);
        if token != Token::Close {
            return Err(format!("found '{literal}', expected: ')'"));
        }
        // kube-apiserver keeps them as a set, which it prints sorted.
        values.sort();
        values.dedup();
        Ok(values)
    }

    fn words(&mut self, values: &mut Vec<String>) -> Result<(), String> {
        loop {
            match self.next(true) {
                (Token::Word, word) => {
                    values.push(word.to_owned());
                    match self.peek(true) {
                        (Token::Comma, _) => continue,
                        (Token::Close, _) => return Ok(()),
                        (_, literal) => return Err(format!("found '{literal}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    match self.peek(true) {
                        (Token::Close, _) => {
                            values.push(String::new());
                            return Ok(());
                        }
                        (Token::Comma, _) => {
                            self.next(true);
                            values.push(String::new());
                        }
                        _ => {}
                    }
                }
                (_, literal) => return Err(format!("found '{literal}', expected: ',', or identifier")),
            }
        }
    }
}

fn lex(text: &str) -> Vec<(Token, &str)> {
    const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];
    const SPECIAL: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];
    const SYMBOLS: [(&str, Token); 9] = [
        ("!=", Token::NotEquals),
        ("==", Token::Equals),
        ("=", Token::Equals),
        ("!", Token::Not),
        ("(", Token::Open),
        (")", Token::Close),
        (",", Token::Comma),
        (">", Token::Greater),
        ("<", Token::Less),
    ];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(SPACE);
    while !rest.is_empty() {
        let (token, length) = match SYMBOLS.iter().find(|(symbol, _)| rest.starts_with(symbol)) {
            Some((symbol, token)) => (*token, symbol.len()),
            None => {
                let end = rest
                    .find(|c| SPACE.contains(&c) || SPECIAL.contains(&c))
                    .unwrap_or(rest.len());
                let token = match &rest[..end] {
                    "in" => Token::In,
                    "notin" => Token::NotIn,
                    _ => Token::Word,
                };
                (token, end)
            }
        };
        let (literal, after) = rest.split_at(length);
        tokens.push((token, literal));
        rest = after.trim_start_matches(SPACE);
    }
    tokens
}

/// Checks a qualified name: `name` or `dns.prefix/name` (apimachinery `validation.IsQualifiedName`).
fn check_key(key: &str) -> Result<(), String> {
    let mut faults = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, rest)) if rest.contains('/') => {
            return Err(invalid(
                "<nil>",
                key,
                "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
            ));
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty");
            } else if !is_subdomain(prefix) {
                faults.push("prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
            }
            name
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty");
    } else if name.len() > LABEL_MAX {
        faults.push("name part must be no more than 63 bytes");
    }
    if !has_word_form(name) {
        faults.push("name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')");
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(invalid("<nil>", key, &faults.join("; ")))
    }
}

fn check_value(key: &str, index: usize, value: &str) -> Result<(), String> {
    let mut faults = Vec::new();
    if value.len() > LABEL_MAX {
        faults.push("must be no more than 63 bytes");
    }
    if !value.is_empty() && !has_word_form(value) {
        faults.push("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(invalid(
            &format!("values[{index}][{key}]"),
            value,
            &faults.join("; "),
        ))
    }
}

fn invalid(path: &str, value: &str, fault: &str) -> String {
    format!("{path}: Invalid value: {}: {fault}", quote(value))
}
