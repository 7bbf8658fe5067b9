//! Kubeconfigs for clients of a server.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::tls::Identity;

/// A kubeconfig with one cluster, one user and one context, all named `fake`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubeconfig {
    /// URL of the server: `https://127.0.0.1:6443`.
    pub server: String,
    /// CA certificate (PEM); needed for `https`.
    pub authority_pem: Option<String>,
    /// Credentials of the client.
    pub credentials: Credentials,
    /// Default namespace.
    pub namespace: String,
}

/// Credentials of a client.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum Credentials {
    /// None.
    #[default]
    None,
    /// Bearer token.
    Token(String),
    /// Client certificate.
    Certificate(Identity),
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Token(_) => "Token",
            Self::Certificate(_) => "Certificate",
        })
    }
}

impl Kubeconfig {
    /// Returns the text of the file: JSON, which is YAML.
    pub fn text(&self) -> String {
        let mut cluster = json!({ "server": self.server });
        if let Some(pem) = &self.authority_pem {
            cluster["certificate-authority-data"] = json!(STANDARD.encode(pem));
        } else if self.server.starts_with("http:") {
            // There is nothing to verify, and the JavaScript client rejects plain HTTP without it (`createAgent` of
            // @kubernetes/client-node).
            cluster["insecure-skip-tls-verify"] = json!(true);
        }
        let user = match &self.credentials {
            Credentials::None => json!({}),
            Credentials::Token(token) => json!({ "token": token }),
            Credentials::Certificate(identity) => json!({
                "client-certificate-data": STANDARD.encode(&identity.certificate_pem),
                "client-key-data": STANDARD.encode(&identity.key_pem),
            }),
        };
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "fake", "cluster": cluster }],
            "users": [{ "name": "fake", "user": user }],
            "contexts": [{
                "name": "fake",
                "context": { "cluster": "fake", "user": "fake", "namespace": self.namespace },
            }],
            "current-context": "fake",
        });
        format!("{config:#}\n")
    }

    /// Writes the text to a new file at `path`, readable only by its owner. Returns the open file.
    ///
    /// # Errors
    /// I/O errors; `AlreadyExists` if `path` exists, also as a symbolic link. No file is left behind.
    pub fn write(&self, path: &Path) -> io::Result<File> {
        let mut file = private_files::create(path)?;
        match file.write_all(self.text().as_bytes()) {
            Ok(()) => Ok(file),
            Err(error) => {
                // The file was created above.
                let _ = std::fs::remove_file(path);
                Err(error)
            }
        }
    }

    /// Returns the server's address if `text` is what [`Kubeconfig::text`] returns for some server, byte for byte in its
    /// form: one cluster, one user and one context, all named `fake`.
    pub fn server_of(text: &str) -> Option<String> {
        let config: Value = serde_json::from_str(text).ok()?;
        let only_ours = ["clusters", "users", "contexts"].iter().all(|list| {
            config[list]
                .as_array()
                .is_some_and(|list| list.len() == 1 && list[0]["name"] == "fake")
        });
        let same_form = format!("{config:#}\n") == text;
        let server = config["clusters"][0]["cluster"]["server"].as_str()?;
        (only_ours && same_form).then(|| server.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing(Credentials::None, json!({}))]
    #[case::token(Credentials::Token("t".to_owned()), json!({ "token": "t" }))]
    #[case::certificate(
        Credentials::Certificate(Identity { certificate_pem: "c".to_owned(), key_pem: "k".to_owned() }),
        json!({ "client-certificate-data": "Yw==", "client-key-data": "aw==" })
    )]
    fn every_way_to_be_known_has_its_keys(#[case] credentials: Credentials, #[case] user: serde_json::Value) {
        let config = Kubeconfig {
            server: "https://127.0.0.1:6443".to_owned(),
            authority_pem: Some("a".to_owned()),
            credentials,
            namespace: "default".to_owned(),
        };
        let read: serde_json::Value = serde_json::from_str(&config.text()).unwrap();
        assert_eq!(read["users"][0]["user"], user);
        assert_eq!(
            read["clusters"][0]["cluster"],
            json!({ "server": "https://127.0.0.1:6443", "certificate-authority-data": "YQ==" })
        );
    }

    #[rstest]
    #[case::plain("http://127.0.0.1:1", json!({ "server": "http://127.0.0.1:1", "insecure-skip-tls-verify": true }))]
    #[case::trusted_otherwise("https://127.0.0.1:1", json!({ "server": "https://127.0.0.1:1" }))]
    fn only_where_there_is_nothing_to_verify_nothing_is(
        #[case] server: &str,
        #[case] cluster: serde_json::Value,
    ) {
        let config = Kubeconfig {
            server: server.to_owned(),
            authority_pem: None,
            credentials: Credentials::None,
            namespace: "default".to_owned(),
        };
        let read: serde_json::Value = serde_json::from_str(&config.text()).unwrap();
        assert_eq!(read["clusters"][0]["cluster"], cluster);
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_is_its_owners_alone_and_an_existing_one_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = std::env::temp_dir().join(format!("kubeconfig-test-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (path, link) = (folder.join("config"), folder.join("link"));
        std::os::unix::fs::symlink(folder.join("nowhere"), &link).unwrap();
        let config = Kubeconfig {
            server: "http://127.0.0.1:1".to_owned(),
            authority_pem: None,
            credentials: Credentials::None,
            namespace: "default".to_owned(),
        };
        config.write(&path).unwrap();
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, config.text());
        assert_eq!(Kubeconfig::server_of(&text), Some(config.server.clone()));
        for taken in [&path, &link] {
            let refused = config.write(taken).map(|_| ()).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        }
        assert!(!folder.join("nowhere").exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[rstest]
    #[case::empty("")]
    #[case::no_config("{}")]
    #[case::another_form(
        "{\"clusters\":[{\"name\":\"fake\",\"cluster\":{\"server\":\"http://127.0.0.1:1\"}}],\"users\":[{\"name\":\"fake\"}],\"contexts\":[{\"name\":\"fake\"}]}"
    )]
    #[case::yaml("apiVersion: v1\nkind: Config\nclusters: []\n")]
    fn a_file_of_somebody_else_is_none_of_ours(#[case] text: &str) {
        assert_eq!(Kubeconfig::server_of(text), None);
    }
}
