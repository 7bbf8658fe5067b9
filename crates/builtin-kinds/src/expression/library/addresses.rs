//! Addresses of IP and ranges of them: `ip('192.168.0.1').family()`, `cidr('10.0.0.0/8').containsIP('10.1.2.3')`.

use std::net::IpAddr;

use apimachinery::go_text::quote;
use cel::Env;
use cel::common::types::{CelBool, CelInt, CelString};

use super::{Declared, opaque, refused};

#[derive(Debug, Clone, PartialEq, Eq)]
struct Ip(IpAddr);

/// An address with the length of its prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cidr(IpAddr, u32);

opaque!(Ip, "net.IP", IP);
opaque!(Cidr, "net.CIDR", CIDR);

type Result<T> = std::result::Result<T, cel::ExecutionError>;

pub(super) fn declare(env: &mut Env) -> Declared {
    env.add_type(IP.to_owned())?;
    env.add_type(CIDR.to_owned())?;
    cel::add_overload!(env, fn ip: (CelString) -> Result<Ip>)?;
    cel::add_overload!(env, fn is_ip: (CelString) -> CelBool, name = "isIP")?;
    cel::add_overload!(env, fn is_canonical: (CelString) -> Result<CelBool>, name = "ip.isCanonical")?;
    cel::add_overload!(env, fn ip_text: (Ip) -> CelString, name = "string")?;
    cel::add_member_overload!(env, fn family: (Ip) -> CelInt)?;
    cel::add_member_overload!(env, fn is_unspecified: (Ip) -> CelBool)?;
    cel::add_member_overload!(env, fn is_loopback: (Ip) -> CelBool)?;
    cel::add_member_overload!(env, fn is_link_local_multicast: (Ip) -> CelBool)?;
    cel::add_member_overload!(env, fn is_link_local_unicast: (Ip) -> CelBool)?;
    cel::add_member_overload!(env, fn is_global_unicast: (Ip) -> CelBool)?;
    cel::add_overload!(env, fn cidr: (CelString) -> Result<Cidr>)?;
    cel::add_overload!(env, fn is_cidr: (CelString) -> CelBool, name = "isCIDR")?;
    cel::add_overload!(env, fn cidr_text: (Cidr) -> CelString, name = "string")?;
    cel::add_member_overload!(env, fn address: (Cidr) -> Ip, name = "ip")?;
    cel::add_member_overload!(env, fn prefix_length: (Cidr) -> CelInt)?;
    cel::add_member_overload!(env, fn masked: (Cidr) -> Cidr)?;
    cel::add_member_overload!(env, fn contains_ip: (Cidr, Ip) -> CelBool, name = "containsIP")?;
    cel::add_member_overload!(env, fn contains_ip_text: (Cidr, CelString) -> Result<CelBool>, name = "containsIP")?;
    cel::add_member_overload!(env, fn contains_cidr: (Cidr, Cidr) -> CelBool, name = "containsCIDR")?;
    cel::add_member_overload!(env, fn contains_cidr_text: (Cidr, CelString) -> Result<CelBool>, name = "containsCIDR")
}

fn read_ip(text: &str) -> std::result::Result<IpAddr, String> {
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

fn read_cidr(text: &str) -> std::result::Result<Cidr, String> {
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

fn ip(text: &CelString<'_>) -> Result<Ip> {
    read_ip(text.inner())
        .map(Ip)
        .map_err(|error| refused("ip", error))
}

fn is_ip(text: &CelString<'_>) -> CelBool {
    read_ip(text.inner()).is_ok().into()
}

fn is_canonical(text: &CelString<'_>) -> Result<CelBool> {
    let Ip(address) = ip(text)?;
    Ok((address.to_string() == text.inner()).into())
}

fn ip_text(of: &Ip) -> CelString<'static> {
    of.0.to_string().into()
}

fn family(of: &Ip) -> CelInt {
    match of.0 {
        IpAddr::V4(_) => 4.into(),
        IpAddr::V6(_) => 6.into(),
    }
}

fn is_unspecified(of: &Ip) -> CelBool {
    of.0.is_unspecified().into()
}

fn is_loopback(of: &Ip) -> CelBool {
    of.0.is_loopback().into()
}

fn is_link_local_multicast(of: &Ip) -> CelBool {
    let is = match of.0 {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    };
    is.into()
}

fn link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn is_link_local_unicast(of: &Ip) -> CelBool {
    link_local(of.0).into()
}

fn is_global_unicast(of: &Ip) -> CelBool {
    let broadcast = matches!(of.0, IpAddr::V4(v4) if v4.is_broadcast());
    let other = of.0.is_unspecified() || of.0.is_loopback() || of.0.is_multicast() || link_local(of.0);
    (!broadcast && !other).into()
}

fn cidr(text: &CelString<'_>) -> Result<Cidr> {
    read_cidr(text.inner()).map_err(|error| refused("cidr", error))
}

fn is_cidr(text: &CelString<'_>) -> CelBool {
    read_cidr(text.inner()).is_ok().into()
}

fn cidr_text(of: &Cidr) -> CelString<'static> {
    format!("{}/{}", of.0, of.1).into()
}

fn address(of: &Cidr) -> Ip {
    Ip(of.0)
}

fn prefix_length(of: &Cidr) -> CelInt {
    i64::from(of.1).into()
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

fn masked(of: &Cidr) -> Cidr {
    Cidr(prefix(of.0, of.1), of.1)
}

fn contains_ip(of: &Cidr, ip: &Ip) -> CelBool {
    let same_family = of.0.is_ipv4() == ip.0.is_ipv4();
    (same_family && prefix(ip.0, of.1) == prefix(of.0, of.1)).into()
}

fn contains_ip_text(of: &Cidr, text: &CelString<'_>) -> Result<CelBool> {
    Ok(contains_ip(of, &ip(text)?))
}

fn contains_cidr(of: &Cidr, other: &Cidr) -> CelBool {
    let contained: bool = contains_ip(of, &Ip(other.0)).into();
    (contained && of.1 <= other.1).into()
}

fn contains_cidr_text(of: &Cidr, text: &CelString<'_>) -> Result<CelBool> {
    Ok(contains_cidr(of, &cidr(text)?))
}
