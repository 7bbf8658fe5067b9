//! Functions of strings. Offsets count characters.
//!
//! Source: cel-go `ext/strings.go`, version 2; costs: apiserver `pkg/cel/library/cost.go`.

use super::{Function, Outcome, failed, lists, printf};
use crate::expression::Failure;
use crate::expression::meter::Meter;
use crate::expression::value::{Text, Value};

pub(super) fn find(name: &str, on_target: bool, args: usize) -> Option<Function> {
    Some(match (name, on_target, args) {
        ("charAt", true, 1) => char_at,
        ("indexOf", true, 1 | 2) => index_of,
        ("lastIndexOf", true, 1 | 2) => last_index_of,
        ("join", true, 0 | 1) => join,
        ("lowerAscii", true, 0) => |meter, args| transformed(meter, args, str::to_ascii_lowercase),
        ("upperAscii", true, 0) => |meter, args| transformed(meter, args, str::to_ascii_uppercase),
        ("trim", true, 0) => |meter, args| transformed(meter, args, |text| text.trim().to_owned()),
        ("replace", true, 2 | 3) => replace,
        ("split", true, 1 | 2) => split,
        ("substring", true, 1 | 2) => substring,
        ("format", true, 1) => printf::format,
        ("strings.quote", false, 1) => quote,
        ("jsonpatch.escapeKey", false, 1) => {
            |meter, args| transformed(meter, args, |text| text.replace('~', "~0").replace('/', "~1"))
        }
        _ => return None,
    })
}

/// Offset of a character in bytes, after the work of finding it.
fn offset(meter: &mut Meter, text: &Text, chars: usize) -> Result<usize, Failure> {
    if text.is_ascii() {
        return Ok(chars);
    }
    meter.work(u64::try_from(chars / 8).unwrap_or(u64::MAX))?;
    let found = text.as_str().char_indices().nth(chars);
    Ok(found.map_or(text.as_str().len(), |(at, _)| at))
}

/// Reads an offset, which is in the text or behind it.
fn position(text: &Text, at: i64) -> Result<usize, Failure> {
    let position = usize::try_from(at).ok().filter(|at| *at <= text.chars());
    position.ok_or_else(|| failed(format!("index out of range: {at}")))
}

fn char_at(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    let [Value::Text(text), Value::Int(at)] = args else {
        return Err(Failure::Overload);
    };
    let at = position(text, *at)?;
    let start = offset(meter, text, at)?;
    let character = text.as_str()[start..].chars().next();
    meter.allocate(4)?;
    Ok(Value::text(character.map(String::from).unwrap_or_default()))
}

/// Cost of a search in a list or a string, and its work: each place may be compared with all of the part.
fn searched(meter: &mut Meter, args: &[Value]) -> Result<(), Failure> {
    meter.charge(args.first().map_or(0, |text| text.size() / 10))?;
    match args {
        [Value::Text(text), Value::Text(part), ..] => meter.bytes(
            text.as_str()
                .len()
                .saturating_add(part.as_str().len())
                .saturating_mul(8),
        ),
        _ => Err(Failure::Overload),
    }
}

fn index_of(meter: &mut Meter, args: &[Value]) -> Outcome {
    if let [Value::List(list), wanted] = args {
        return lists::position(meter, list, wanted, false);
    }
    searched(meter, args)?;
    let (text, part, from) = match args {
        [Value::Text(text), Value::Text(part)] => (text, part, 0),
        [Value::Text(text), Value::Text(part), Value::Int(from)] => (text, part, *from),
        _ => return Err(Failure::Overload),
    };
    let Ok(from) = usize::try_from(from) else {
        return Err(failed(format!("index out of range: {from}")));
    };
    let from = match (part.as_str().is_empty(), from >= text.chars()) {
        (true, _) => return whole(from.min(text.chars())),
        (false, true) => return Ok(Value::Int(-1)),
        (false, false) => from,
    };
    let start = offset(meter, text, from)?;
    let found = text.as_str()[start..].find(part.as_str());
    found.map_or(Ok(Value::Int(-1)), |at| {
        whole(from + text.as_str()[start..start + at].chars().count())
    })
}

fn last_index_of(meter: &mut Meter, args: &[Value]) -> Outcome {
    if let [Value::List(list), wanted] = args {
        return lists::position(meter, list, wanted, true);
    }
    searched(meter, args)?;
    let (text, part, until) = match args {
        [Value::Text(text), Value::Text(part)] => (text, part, None),
        [Value::Text(text), Value::Text(part), Value::Int(until)] => (text, part, Some(*until)),
        _ => return Err(Failure::Overload),
    };
    let until = match until {
        None => text.chars(),
        Some(until) => usize::try_from(until).map_err(|_| failed(format!("index out of range: {until}")))?,
    };
    if part.as_str().is_empty() {
        return whole(until.min(text.chars()));
    }
    if until > text.chars() || part.chars() > text.chars() {
        return Ok(Value::Int(-1));
    }
    // The last occurrence that begins there or before.
    let end = (until + part.chars()).min(text.chars());
    let end = offset(meter, text, end)?;
    let found = text.as_str()[..end].rfind(part.as_str());
    found.map_or(Ok(Value::Int(-1)), |at| {
        whole(text.as_str()[..at].chars().count())
    })
}

fn whole(number: usize) -> Outcome {
    Ok(Value::Int(i64::try_from(number).unwrap_or(i64::MAX)))
}

fn transformed(meter: &mut Meter, args: &[Value], transform: fn(&str) -> String) -> Outcome {
    let [value @ Value::Text(text)] = args else {
        return Err(Failure::Overload);
    };
    meter.traversal(value.size(), 1)?;
    meter.allocate(text.as_str().len())?;
    Ok(Value::text(transform(text.as_str())))
}

fn replace(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (text, from, to, most) = match args {
        [Value::Text(text), Value::Text(from), Value::Text(to)] => (text, from, to, -1),
        [
            Value::Text(text),
            Value::Text(from),
            Value::Text(to),
            Value::Int(most),
        ] => (text, from, to, *most),
        _ => return Err(Failure::Overload),
    };
    meter.traversal(args[0].size(), 2)?;
    meter.bytes(text.as_str().len())?;
    // A negative number means no limit.
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let found = text.as_str().matches(from.as_str()).take(most).count();
    meter.allocate(
        found
            .saturating_mul(to.as_str().len())
            .saturating_add(text.as_str().len()),
    )?;
    Ok(Value::text(text.as_str().replacen(
        from.as_str(),
        to.as_str(),
        most,
    )))
}

fn split(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (text, separator, most) = match args {
        [Value::Text(text), Value::Text(separator)] => (text, separator, -1),
        [Value::Text(text), Value::Text(separator), Value::Int(most)] => (text, separator, *most),
        _ => return Err(Failure::Overload),
    };
    meter.traversal(args[0].size(), 2)?;
    // A negative number means no limit.
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let text = text.as_str();
    let mut parts = Vec::new();
    let mut add = |meter: &mut Meter, part: &str| {
        meter.allocate(part.len())?;
        parts.push(Value::text(part));
        Ok::<_, Failure>(())
    };
    match separator.as_str() {
        _ if most == 0 => {}
        // Characters; the last part is the rest.
        "" => {
            for (taken, (at, character)) in (1..).zip(text.char_indices()) {
                if taken == most {
                    add(meter, &text[at..])?;
                    break;
                }
                add(meter, &text[at..at + character.len_utf8()])?;
            }
        }
        separator => {
            for part in text.splitn(most, separator) {
                add(meter, part)?;
            }
        }
    }
    Ok(Value::list(parts))
}

fn substring(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (text, start, end) = match args {
        [Value::Text(text), Value::Int(start)] => (text, *start, None),
        [Value::Text(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        _ => return Err(Failure::Overload),
    };
    meter.traversal(args[0].size(), 1)?;
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(failed(format!(
            "invalid substring range. start: {start}, end: {end}"
        )));
    }
    let start = position(text, start)?;
    let end = end.map_or(Ok(text.chars()), |end| position(text, end))?;
    let (start, end) = (offset(meter, text, start)?, offset(meter, text, end)?);
    meter.allocate(end - start)?;
    Ok(Value::text(&text.as_str()[start..end]))
}

fn join(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (list, separator) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::Text(separator)] => (list, separator.as_str()),
        _ => return Err(Failure::Overload),
    };
    let mut bytes = 0_usize;
    let mut chars = 0_usize;
    let separators = list.items().len().saturating_sub(1);
    meter.elements(list.items().len())?;
    for item in list.items() {
        let Value::Text(item) = item else {
            return Err(Failure::Overload);
        };
        bytes = bytes.saturating_add(item.as_str().len());
        chars = chars.saturating_add(item.chars());
    }
    let between = separators.saturating_mul(separator.chars().count());
    let size = u64::try_from(chars.saturating_add(between)).unwrap_or(u64::MAX);
    meter.traversal(size, 2)?;
    meter.allocate(bytes.saturating_add(separators.saturating_mul(separator.len())))?;
    let mut joined = String::new();
    for (nth, item) in list.items().iter().enumerate() {
        if let Value::Text(item) = item {
            joined.push_str(if nth == 0 { "" } else { separator });
            joined.push_str(item.as_str());
        }
    }
    Ok(Value::text(joined))
}

fn quote(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [value @ Value::Text(text)] = args else {
        return Err(Failure::Overload);
    };
    meter.traversal(value.size(), 1)?;
    meter.allocate(text.as_str().len().saturating_mul(2))?;
    let mut quoted = String::from("\"");
    for character in text.as_str().chars() {
        match character {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    Ok(Value::text(quoted))
}
