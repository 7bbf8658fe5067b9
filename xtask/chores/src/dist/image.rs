//! The container image as an OCI archive, written without a daemon: for each platform the program, licences, and a `/tmp`.
//!
//! `deploy/Containerfile` describes the same image for buildah. Formats: <https://github.com/opencontainers/image-spec>.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::files::{Content, Entry, gzip, sha256, tar};
use super::release::{Artifact, Binary, Release};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Nanoseconds of a second, the unit of health checks.
const SECOND: u64 = 1_000_000_000;

/// Blobs of an image, by digest.
type Blobs = BTreeMap<String, Vec<u8>>;

/// Returns the image of all platforms of Linux as one archive.
///
/// # Errors
/// There is no binary for Linux.
pub(super) fn artifacts(release: &Release) -> Result<Vec<Artifact>, String> {
    let mut blobs = Blobs::new();
    let mut manifests = Vec::new();
    for binary in release
        .binaries
        .iter()
        .filter(|binary| binary.platform.go.0 == "linux")
    {
        manifests.push(of_platform(binary, release, &mut blobs)?);
    }
    if manifests.is_empty() {
        return Err("an image needs a binary for Linux".to_owned());
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    let mut image = descriptor(INDEX, index.to_string().into_bytes(), &mut blobs);
    image["annotations"] =
        json!({"org.opencontainers.image.ref.name": format!("fake-apiserver:{}", release.version)});
    let layout = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [image]});
    let mut entries: Vec<Entry> = blobs
        .into_iter()
        .map(|(digest, bytes)| Entry::file(format!("blobs/sha256/{digest}"), bytes))
        .collect();
    entries.push(Entry::file("index.json", layout.to_string()));
    entries.push(Entry::file(
        "oci-layout",
        json!({"imageLayoutVersion": "1.0.0"}).to_string(),
    ));
    // Layers are compressed already.
    Ok(vec![Artifact::new(
        format!("fake-apiserver-{}-oci.tar", release.version),
        tar(&entries, release.style)?,
    )])
}

/// Adds the blobs of the image for a platform, and returns the descriptor of its manifest.
fn of_platform(binary: &Binary, release: &Release, blobs: &mut Blobs) -> Result<Value, String> {
    let layer = tar(&root(binary, release), release.style)?;
    let (system, processor) = binary.platform.go;
    let labels = json!({
        "org.opencontainers.image.title": "fake-apiserver",
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
    });
    let config = json!({
        "created": super::timestamp(release.style.epoch)?,
        "os": system,
        "architecture": processor,
        "config": {
            "User": "65532:65532",
            "ExposedPorts": {"6443/tcp": {}},
            "Env": ["HOME=/tmp", "PATH=/usr/bin"],
            "Entrypoint": ["/usr/bin/fake-apiserver"],
            "Cmd": ["serve", "--port", "6443", "--quiet"],
            // Not in the specification. Docker reads it; podman reads it from its own format only.
            "Healthcheck": {
                "Test": ["CMD", "/usr/bin/fake-apiserver", "ctl", "status"],
                "Interval": 10 * SECOND, "Timeout": 5 * SECOND, "StartPeriod": 2 * SECOND,
            },
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))]},
        "history": [{"created": super::timestamp(release.style.epoch)?, "created_by": "cargo xtask dist"}],
    });
    let config = descriptor(CONFIG, config.to_string().into_bytes(), blobs);
    let layer = descriptor(LAYER, gzip(&layer, release.style)?, blobs);
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
    let mut described = descriptor(MANIFEST, manifest.to_string().into_bytes(), blobs);
    described["platform"] = json!({"os": system, "architecture": processor});
    Ok(described)
}

/// Returns the files of the image.
fn root(binary: &Binary, release: &Release) -> Vec<Entry> {
    let folder = |path: &str, mode| Entry {
        path: format!("{path}/"),
        mode,
        content: Content::Folder,
    };
    let mut entries: Vec<Entry> = [
        "usr",
        "usr/bin",
        "usr/share",
        "usr/share/licenses",
        "usr/share/licenses/fake-apiserver",
    ]
    .map(|path| folder(path, 0o755))
    .to_vec();
    entries.push(folder("tmp", 0o1777));
    entries.push(Entry::program("usr/bin/fake-apiserver", binary.bytes.clone()));
    entries.extend(
        release
            .licences()
            .iter()
            .map(|entry| entry.below("usr/share/licenses/fake-apiserver")),
    );
    entries
}

/// Adds a blob and returns its descriptor.
fn descriptor(media_type: &str, bytes: Vec<u8>, blobs: &mut Blobs) -> Value {
    let digest = sha256(&bytes);
    let described =
        json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": bytes.len()});
    blobs.insert(digest, bytes);
    described
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::dist::release::samples;

    #[test]
    fn every_descriptor_has_a_blob_and_every_platform_a_manifest() {
        let artifacts = artifacts(&samples::release()).unwrap();
        let mut read = ::tar::Archive::new(&artifacts[0].bytes[..]);
        let mut files = BTreeMap::new();
        for entry in read.entries().unwrap() {
            let mut entry = entry.unwrap();
            let (path, mut bytes) = (entry.path().unwrap().display().to_string(), Vec::new());
            entry.read_to_end(&mut bytes).unwrap();
            files.insert(path, bytes);
        }
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"]
                .as_str()
                .unwrap()
                .strip_prefix("sha256:")
                .unwrap();
            let bytes = &files[&format!("blobs/sha256/{digest}")];
            assert_eq!(
                (sha256(bytes).as_str(), bytes.len() as u64),
                (digest, descriptor["size"].as_u64().unwrap())
            );
            bytes
        };
        let json = |descriptor: &Value| serde_json::from_slice::<Value>(blob(descriptor)).unwrap();
        let layout: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        let index = json(&layout["manifests"][0]);
        let manifests = index["manifests"].as_array().unwrap();
        assert_eq!(manifests.len(), 2);
        for described in manifests {
            let manifest = json(described);
            let config = json(&manifest["config"]);
            assert_eq!(config["architecture"], described["platform"]["architecture"]);
            let mut layer = Vec::new();
            flate2::read::GzDecoder::new(&blob(&manifest["layers"][0])[..])
                .read_to_end(&mut layer)
                .unwrap();
            assert_eq!(
                config["rootfs"]["diff_ids"][0],
                format!("sha256:{}", sha256(&layer))
            );
        }
    }
}
