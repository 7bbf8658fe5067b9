//! Objects as apiservers write them, all distinct and of equal length. Independent of requests.

/// Fields in the order of an apiserver.
const POD: &str = include_str!("fixture/pod.json");
const MANAGED_FIELDS: &str = include_str!("fixture/managed_fields.json");
const CONFIG_MAP: &str = include_str!("fixture/config_map.json");

/// Kind of the objects of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fixture {
    /// A Pod of 5.7 KB with two field managers.
    Pod,
    /// A Pod without `managedFields`: 3.5 KB.
    LeanPod,
    /// The Pod as `PartialObjectMetadata`: 2.9 KB.
    PodMetadata,
    /// A ConfigMap of half a KB.
    ConfigMap,
}

/// Placeholder for an object's number and for its version, of the same length.
const NUMBER: &str = "#######";
const VERSION: &str = "@@@@@@@@";
/// Placeholder for digits that are unique per object, like incompressible digests.
const DIGEST: &str = "%%%%%%%%%%%%%%%%";

/// First version of listed objects; events start at [`EVENT_VERSIONS`]: both have the same number of digits.
pub(crate) const LIST_VERSIONS: u64 = 10_000_000;
/// Version of the first event of a watch.
pub(crate) const EVENT_VERSIONS: u64 = 50_000_000;

impl Fixture {
    pub(crate) const ALL: [Self; 4] = [Self::Pod, Self::LeanPod, Self::PodMetadata, Self::ConfigMap];

    /// Returns the word in a path.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::LeanPod => "lean",
            Self::PodMetadata => "metadata",
            Self::ConfigMap => "configmap",
        }
    }

    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::Pod | Self::LeanPod | Self::ConfigMap => "v1",
            Self::PodMetadata => "meta.k8s.io/v1",
        }
    }

    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Pod | Self::LeanPod => "Pod",
            Self::PodMetadata => "PartialObjectMetadata",
            Self::ConfigMap => "ConfigMap",
        }
    }

    /// Returns a line of a watch, including its newline.
    pub(crate) fn event(self, word: &str) -> Template {
        let (kind, api_version, object) = (self.kind(), self.api_version(), self.object());
        let rest = object.trim_start_matches('{');
        Template::new(format!(
            "{{\"type\":\"{word}\",\"object\":{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",{rest}}}\n"
        ))
    }

    /// Returns an item of a list, without type as in lists of built-in kinds.
    pub(crate) fn item(self) -> Template {
        Template::new(self.object())
    }

    fn object(self) -> String {
        let managed = |pod: &str| {
            let fields = format!("}}],\"managedFields\":{}}}", compact(MANAGED_FIELDS));
            // After the owner references, the last field of the metadata.
            pod.replacen("}]}", &fields, 1)
        };
        let pod = compact(POD);
        match self {
            Self::Pod => managed(&pod),
            Self::LeanPod => pod,
            Self::PodMetadata => {
                let metadata = pod.split(",\"spec\":").next().unwrap_or_default();
                managed(&format!("{metadata}}}"))
            }
            Self::ConfigMap => compact(CONFIG_MAP),
        }
    }
}

/// An object without its number and version.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    text: String,
    numbers: Vec<usize>,
    versions: Vec<usize>,
    digests: Vec<usize>,
}

impl Template {
    fn new(text: String) -> Self {
        let places = |mark: &str| text.match_indices(mark).map(|(at, _)| at).collect();
        Self {
            numbers: places(NUMBER),
            versions: places(VERSION),
            digests: places(DIGEST),
            text,
        }
    }

    /// Returns the length of an object in bytes, the same for all.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Replaces the version of a written object.
    pub(crate) fn set_version(&self, object: &mut [u8], version: u64) {
        fill(object, &self.versions, VERSION.len(), version);
    }

    /// Appends the object with this number and version.
    pub(crate) fn write(&self, number: u64, version: u64, to: &mut Vec<u8>) {
        let start = to.len();
        to.extend_from_slice(self.text.as_bytes());
        fill(&mut to[start..], &self.numbers, NUMBER.len(), number);
        self.set_version(&mut to[start..], version);
        let mut digest = number;
        for &place in &self.digests {
            digest = mixed(digest);
            for (nibble, byte) in to[start + place..start + place + DIGEST.len()]
                .iter_mut()
                .enumerate()
            {
                *byte = b"0123456789abcdef"[usize::try_from(digest >> (4 * nibble) & 15).unwrap_or(0)];
            }
        }
    }
}

/// Computes a step of splitmix64.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn fill(text: &mut [u8], places: &[usize], length: usize, mut number: u64) {
    let mut digits = [b'0'; 8];
    for digit in digits[..length].iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
    for &place in places {
        text[place..place + length].copy_from_slice(&digits[..length]);
    }
}

/// Removes line breaks and indentation: no string of the files starts or ends a line.
fn compact(file: &str) -> String {
    file.lines().map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn objects_have_the_sizes_the_figures_are_for() {
        let sizes = Fixture::ALL.map(|fixture| fixture.event("ADDED").text.len());
        for (size, wanted) in sizes.into_iter().zip([5752_usize, 3529, 2922, 519]) {
            assert!(size.abs_diff(wanted) < wanted / 50, "{sizes:?}");
        }
    }

    #[test]
    fn a_template_is_filled_in_everywhere() {
        let mut text = Vec::new();
        Fixture::Pod.item().write(42, LIST_VERSIONS + 42, &mut text);
        let pod: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(pod["metadata"]["name"], "checkout-7c9d5b8f4-0000042");
        assert_eq!(pod["metadata"]["resourceVersion"], "10000042");
        for mark in [NUMBER, VERSION, DIGEST] {
            assert!(!pod.to_string().contains(mark));
        }
    }
}
