//! Addresses of IP and ranges of them: `ip('192.168.0.1').family()`, `cidr('10.0.0.0/8').containsIP('10.1.2.3')`.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "operations name the types that they have; a new type has none"
)]

use std::net::IpAddr;

use apimachinery::go_text::quote;

use super::{Function, Outcome, failed, opaque};
use crate::expression::Failure;
use crate::expression::meter::Meter;
use crate::expression::value::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Ip(IpAddr);

/// An address with the length of its prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cidr(IpAddr, u32);

opaque!(Ip, "net.IP", {
    fn size(&self) -> usize {
        bits(self.0) as usize / 8
    }

    fn text(&self) -> Option<String> {
        Some(self.0.to_string())
    }
});
opaque!(Cidr, "net.CIDR", {
    fn size(&self) -> usize {
        bits(self.0) as usize / 8
    }

    fn text(&self) -> Option<String> {
        Some(format!("{}/{}", self.0, self.1))
    }
});

pub(super) fn find(name: &str, on_target: bool, args: usize) -> Option<Function> {
    Some(match (name, on_target, args) {
        ("ip", false, 1) => |meter, args| parsed(meter, args, 1, |text| ip(text).map(Value::opaque)),
        ("isIP", false, 1) => {
            |meter, args| parsed(meter, args, 1, |text| Ok(Value::Bool(read_ip(text).is_ok())))
        }
        ("ip.isCanonical", false, 1) => |meter, args| {
            parsed(meter, args, 2, |text| {
                Ok(Value::Bool(ip(text)?.0.to_string() == text))
            })
        },
        ("cidr", false, 1) => |meter, args| parsed(meter, args, 1, |text| cidr(text).map(Value::opaque)),
        ("isCIDR", false, 1) => {
            |meter, args| parsed(meter, args, 1, |text| Ok(Value::Bool(read_cidr(text).is_ok())))
        }
        ("family", true, 0) => |meter, args| of_ip(meter, args, |ip| Value::Int(family(ip))),
        ("isUnspecified", true, 0) => |meter, args| of_ip(meter, args, |ip| Value::Bool(ip.is_unspecified())),
        ("isLoopback", true, 0) => |meter, args| of_ip(meter, args, |ip| Value::Bool(ip.is_loopback())),
        ("isLinkLocalMulticast", true, 0) => {
            |meter, args| of_ip(meter, args, |ip| Value::Bool(is_link_local_multicast(ip)))
        }
        ("isLinkLocalUnicast", true, 0) => |meter, args| of_ip(meter, args, |ip| Value::Bool(link_local(ip))),
        ("isGlobalUnicast", true, 0) => {
            |meter, args| of_ip(meter, args, |ip| Value::Bool(is_global_unicast(ip)))
        }
        ("ip", true, 0) => |meter, args| of_cidr(meter, args, |cidr| Value::opaque(Ip(cidr.0))),
        ("prefixLength", true, 0) => |meter, args| of_cidr(meter, args, |cidr| Value::Int(cidr.1.into())),
        ("masked", true, 0) => |meter, args| {
            of_cidr(meter, args, |cidr| {
                Value::opaque(Cidr(prefix(cidr.0, cidr.1), cidr.1))
            })
        },
        ("containsIP", true, 1) => contains_ip,
        ("containsCIDR", true, 1) => contains_cidr,
        _ => return None,
    })
}

/// Applies a function to a text, which it reads this number of times.
fn parsed(meter: &mut Meter, args: &[Value], times: u64, read: fn(&str) -> Outcome) -> Outcome {
    let [value @ Value::Text(text)] = args else {
        return Err(Failure::Overload);
    };
    meter.traversal(value.size(), times)?;
    meter.allocate(text.as_str().len())?;
    read(text.as_str())
}

fn of_ip(meter: &mut Meter, args: &[Value], of: fn(IpAddr) -> Value) -> Outcome {
    meter.charge(1)?;
    let ip = args.first().and_then(Value::downcast::<Ip>);
    ip.map(|ip| of(ip.0)).ok_or(Failure::Overload)
}

fn of_cidr(meter: &mut Meter, args: &[Value], of: fn(&Cidr) -> Value) -> Outcome {
    meter.charge(1)?;
    let cidr = args.first().and_then(Value::downcast::<Cidr>);
    cidr.map(of).ok_or(Failure::Overload)
}

fn read_ip(text: &str) -> Result<IpAddr, String> {
    let quoted = quote(text);
    let address: IpAddr = text.parse().map_err(|_| {
        format!("IP Address {quoted} parse error during conversion from string: ParseAddr({quoted}): unable to parse IP")
    })?;
    let mapped = matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
    if mapped {
        return Err(format!("IPv4-mapped IPv6 address {quoted} is not allowed"));
    }
    Ok(address)
}

fn read_cidr(text: &str) -> Result<Cidr, String> {
    let unreadable = |why: &str| {
        let what = "network address parse error during conversion from string";
        format!("{what}: {what}: netip.ParsePrefix({}): {why}", quote(text))
    };
    let (address, length) = text.rsplit_once('/').ok_or_else(|| unreadable("no '/'"))?;
    let address = read_ip(address)?;
    let well_written = !length.starts_with('+') && (length == "0" || !length.starts_with('0'));
    let length = length.parse::<u32>().ok().filter(|_| well_written);
    match length {
        Some(length) if length <= bits(address) => Ok(Cidr(address, length)),
        Some(_) => Err(unreadable("prefix length out of range")),
        None => Err(unreadable("bad bits after slash")),
    }
}

fn bits(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn ip(text: &str) -> Result<Ip, Failure> {
    read_ip(text).map(Ip).map_err(failed)
}

fn cidr(text: &str) -> Result<Cidr, Failure> {
    read_cidr(text).map_err(failed)
}

fn family(ip: IpAddr) -> i64 {
    match ip {
        IpAddr::V4(_) => 4,
        IpAddr::V6(_) => 6,
    }
}

fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}

fn link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn is_global_unicast(ip: IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    let other = ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || link_local(ip);
    !broadcast && !other
}

/// The first `length` bits of an address; the others are zero.
fn prefix(address: IpAddr, length: u32) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or_default();
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or_default();
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    }
}

impl Cidr {
    fn contains(&self, ip: IpAddr) -> bool {
        let same_family = self.0.is_ipv4() == ip.is_ipv4();
        same_family && prefix(ip, self.1) == prefix(self.0, self.1)
    }
}

/// Charges a comparison with a range, and the reading of what is compared if that is a text.
fn charged<'a>(meter: &mut Meter, args: &'a [Value], more: u64) -> Result<(&'a Cidr, &'a Value), Failure> {
    let [range, other] = args else {
        return Err(Failure::Overload);
    };
    let cidr = range.downcast::<Cidr>().ok_or(Failure::Overload)?;
    let size = range.size();
    let more = if more > 0 { size.div_ceil(10) + more } else { 0 };
    meter.charge((2 * size).div_ceil(10) + more)?;
    if let Value::Text(_) = other {
        meter.traversal(other.size(), 1)?;
    }
    Ok((cidr, other))
}

fn contains_ip(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (range, other) = charged(meter, args, 0)?;
    let other = match other {
        Value::Text(text) => ip(text.as_str())?,
        other => other.downcast::<Ip>().cloned().ok_or(Failure::Overload)?,
    };
    Ok(Value::Bool(range.contains(other.0)))
}

fn contains_cidr(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (range, other) = charged(meter, args, 1)?;
    let other = match other {
        Value::Text(text) => cidr(text.as_str())?,
        other => other.downcast::<Cidr>().cloned().ok_or(Failure::Overload)?,
    };
    Ok(Value::Bool(range.contains(other.0) && range.1 <= other.1))
}
