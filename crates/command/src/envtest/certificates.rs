//! Files of TLS and authentication in flags of kube-apiserver: serving certificate and key, client CA, tokens, service
//! account keys.
//!
//! It must not know how they are used.
//!
//! Source: apiserver `server/options/serving.go`, `authentication/token/tokenfile`; "Static token file".

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use fake_apiserver::api::User;
use fake_apiserver::net::tls::{Authority, Identity, check_authorities};

use super::flags::Given;

/// Default directory of certificates of kube-apiserver.
const CERT_DIR: &str = "/var/run/kubernetes";

/// DNS names of the service `kubernetes`.
const SERVICE_NAMES: [&str; 3] = ["kubernetes.default.svc", "kubernetes.default", "kubernetes"];

/// Returns the serving certificate and its key: the files of `--tls-cert-file` and `--tls-private-key-file`, or `apiserver.crt`
/// and `apiserver.key` in `--cert-dir`, which are generated if neither exists.
///
/// # Errors
/// One of the two is missing, or a file cannot be read or written.
pub(super) fn serving(given: &Given, address: IpAddr) -> Result<Identity, String> {
    let pair = (given.last("tls-cert-file"), given.last("tls-private-key-file"));
    let (certificate, key) = match pair {
        (None | Some(""), None | Some("")) => {
            let folder = PathBuf::from(given.last("cert-dir").unwrap_or(CERT_DIR));
            let pair = (folder.join("apiserver.crt"), folder.join("apiserver.key"));
            if !pair.0.exists() && !pair.1.exists() {
                return generate(&folder, &pair, address);
            }
            pair
        }
        (certificate, key) => (
            PathBuf::from(certificate.unwrap_or_default()),
            PathBuf::from(key.unwrap_or_default()),
        ),
    };
    Ok(Identity {
        certificate_pem: read(&certificate)?,
        key_pem: read(&key)?,
    })
}

fn generate(
    folder: &Path,
    (certificate, key): &(PathBuf, PathBuf),
    address: IpAddr,
) -> Result<Identity, String> {
    let mut names = SERVICE_NAMES.map(str::to_owned).to_vec();
    if !address.is_unspecified() {
        names.push(address.to_string());
    }
    let identity = Authority::generate()
        .and_then(|authority| authority.server(&names))
        .map_err(|error| format!("unable to generate self signed cert: {error}"))?;
    let failed =
        |error: io::Error| format!("unable to write the certificate to {}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(failed)?;
    private_files::write_new_public(certificate, identity.certificate_pem.as_bytes()).map_err(failed)?;
    private_files::write_new(key, identity.key_pem.as_bytes()).map_err(failed)?;
    Ok(identity)
}

/// Returns the certificates of `--client-ca-file`.
///
/// # Errors
///
/// The file cannot be read, or contains no certificate.
pub(super) fn client_authorities(given: &Given) -> Result<Option<String>, String> {
    let Some(file) = given.last("client-ca-file").filter(|file| !file.is_empty()) else {
        return Ok(None);
    };
    let failed = |why: String| format!("unable to load client CA provider: {why}");
    let text = read(Path::new(file)).map_err(failed)?;
    check_authorities(&text).map_err(|error| failed(error.to_string()))?;
    Ok(Some(text))
}

/// Checks that the service account keys can be read. Tokens are signed with a random key of this run.
///
/// # Errors
///
/// A file cannot be read, or contains no key or certificate.
pub(super) fn check_service_account_keys(given: &Given) -> Result<(), String> {
    let signing = given.list("service-account-signing-key-file");
    for file in given.list("service-account-key-file").into_iter().chain(signing) {
        if !read(Path::new(file))?.contains("-----BEGIN ") {
            return Err(format!(
                "error reading key file {file}: data does not contain any valid RSA or ECDSA keys"
            ));
        }
    }
    Ok(())
}

/// Returns the tokens of `--token-auth-file` and their users.
///
/// # Errors
///
/// The file cannot be read, or a line has fewer than three columns.
pub(super) fn tokens(given: &Given) -> Result<Vec<(String, User)>, String> {
    match given.last("token-auth-file").filter(|file| !file.is_empty()) {
        Some(file) => read(Path::new(file)).and_then(|text| parse_tokens(file, &text)),
        None => Ok(Vec::new()),
    }
}

/// Parses lines of `token,user,uid,"group1,group2"`.
fn parse_tokens(file: &str, text: &str) -> Result<Vec<(String, User)>, String> {
    let mut tokens = Vec::new();
    let lines = text.lines().enumerate();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let fields = fields(line);
        let [token, name, uid, rest @ ..] = fields.as_slice() else {
            return Err(format!(
                "token file '{file}' must have at least 3 columns (token, user name, user uid), found {} at line {}",
                fields.len(),
                number + 1
            ));
        };
        let groups = rest.first().map(String::as_str).unwrap_or_default();
        let groups = groups.split(',').map(str::trim).filter(|group| !group.is_empty());
        let user = User {
            name: name.clone(),
            uid: uid.clone(),
            groups: groups.map(str::to_owned).collect(),
            ..User::default()
        };
        tokens.push((token.clone(), user));
    }
    Ok(tokens)
}

/// Splits a line of comma-separated values; a quoted field can contain commas, and doubled quotes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                fields.last_mut().expect("it begins with one").push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            letter => fields.last_mut().expect("it begins with one").push(letter),
        }
    }
    fields
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("open {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_token_file_is_a_user() {
        let text = "t1,jane,7,\"dev,say \"\"ops\"\"\"\n\nt2,joe,\n";
        let tokens = parse_tokens("f", text).unwrap();
        let (token, jane) = &tokens[0];
        assert_eq!(
            (token.as_str(), jane.name.as_str(), jane.uid.as_str()),
            ("t1", "jane", "7")
        );
        assert_eq!(jane.groups, ["dev", "say \"ops\""]);
        assert!(tokens[1].1.groups.is_empty());
        assert_eq!(
            parse_tokens("f", "a,b,c\nt3,x"),
            Err(
                "token file 'f' must have at least 3 columns (token, user name, user uid), found 2 at line 2"
                    .to_owned()
            )
        );
    }
}
