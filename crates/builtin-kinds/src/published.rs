//! OpenAPI documents that kube-apiserver publishes, decompressed at first use.
//!
//! It must not know the meaning of the JSON. `data/openapi/README.md` describes the files and how to regenerate them.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::OnceLock;

use apimachinery::Version;
use flate2::read::GzDecoder;

/// JSON texts by name.
pub type Table = BTreeMap<&'static str, &'static str>;

/// Custom resource that was created in kube-apiserver when the documents were recorded. What it publishes of the sample is
/// published of any custom resource, with the names of the sample replaced.
#[derive(Debug)]
pub struct Sample {
    /// API group.
    pub group: &'static str,
    /// Its only version.
    pub version: &'static str,
    /// Kind of its objects.
    pub kind: &'static str,
    /// The Kind of its lists.
    pub list_kind: &'static str,
    /// Plural of the resource.
    pub plural: &'static str,
    /// `Namespaced` or `Cluster`.
    pub scope: &'static str,
}

impl Sample {
    /// A namespaced and a cluster-scoped sample.
    pub const ALL: [Self; 2] = [
        Self {
            group: "namespaced.sample",
            version: "v9",
            kind: "NamespacedSampleKind",
            list_kind: "NamespacedSampleList",
            plural: "namespacedsampleplurals",
            scope: "Namespaced",
        },
        Self {
            group: "cluster.sample",
            version: "v9",
            kind: "ClusterSampleKind",
            list_kind: "ClusterSampleList",
            plural: "clustersampleplurals",
            scope: "Cluster",
        },
    ];

    /// Returns the sample of this scope.
    pub fn scoped(namespaced: bool) -> &'static Self {
        const SAMPLES: &[Sample] = &Sample::ALL;
        &SAMPLES[usize::from(!namespaced)]
    }
}

/// One of the two files: its tables by version.
struct File {
    packed: &'static [u8],
    text: OnceLock<String>,
    tables: [OnceLock<Table>; 4],
}

impl File {
    const fn new(packed: &'static [u8]) -> Self {
        Self {
            packed,
            text: OnceLock::new(),
            tables: [const { OnceLock::new() }; 4],
        }
    }

    fn table(&'static self, version: Version) -> &'static Table {
        self.tables[nth(version)].get_or_init(|| {
            let text = self.text.get_or_init(|| {
                let mut text = String::new();
                GzDecoder::new(self.packed)
                    .read_to_string(&mut text)
                    .expect("the file was packed by our own chore, and a test unpacks it");
                text
            });
            text.lines()
                .filter_map(|line| row(line, version.minor()))
                .collect()
        })
    }
}

/// Returns the index of a version among those with tables.
pub(crate) fn nth(version: Version) -> usize {
    usize::from(version.minor() - Version::OLDEST.minor())
}

/// Splits a line into name and JSON; `None` if version `minor` does not publish it.
fn row(line: &'static str, minor: u8) -> Option<(&'static str, &'static str)> {
    let (versions, rest) = line.split_once('\t')?;
    let (first, last) = versions.split_once('-')?;
    let published = first.parse::<u8>().ok()? <= minor && minor <= last.parse::<u8>().ok()?;
    published.then(|| rest.split_once('\t')).flatten()
}

static SCHEMAS: File = File::new(include_bytes!("../data/openapi/schemas.gz"));
static PATHS: File = File::new(include_bytes!("../data/openapi/paths.gz"));

/// Returns `components.schemas` of all documents, by name.
pub fn schemas(version: Version) -> &'static Table {
    SCHEMAS.table(version)
}

/// Returns `paths` of all documents, by path.
pub fn paths(version: Version) -> &'static Table {
    PATHS.table(version)
}
