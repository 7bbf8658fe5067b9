//! TLS of a server: a CA generated at start, its certificates, and the server side of handshakes.
//!
//! Generated keys stay in memory, unless the caller writes a kubeconfig with one. No HTTP and no authorization: the module
//! returns the user of a certificate and no more.

mod given;
mod user;

use std::fmt;
use std::sync::Arc;

use pkcs8::PrivateKeyInfoRef;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{NoServerSessionStorage, ServerConfig, WebPkiClientVerifier};
use sec1::der::pem::LineEnding;
use sec1::der::{Decode as _, EncodePem as _};
use sec1::{EcParameters, EcPrivateKey};
use tokio_rustls::TlsAcceptor;

pub use self::given::check_authorities;
pub(crate) use self::given::given;
pub(crate) use self::user::named_by;

/// Names a server on this machine is called by; every server certificate has them.
const LOCAL_NAMES: [&str; 3] = ["127.0.0.1", "::1", "localhost"];

/// Protocols a server offers in its handshake (ALPN), the preferred one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocols {
    /// HTTP/2 for those who can, else HTTP/1.1: what a real apiserver offers.
    #[default]
    Http2OrHttp1,
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only.
    Http2,
}

impl Protocols {
    fn alpn(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Self::Http2OrHttp1 => &[b"h2", b"http/1.1"],
            Self::Http1 => &[b"http/1.1"],
            Self::Http2 => &[b"h2"],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}

/// Why there is no certificate, or no server that shows one.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The caller asked for a certificate of something that is no host name.
    #[error("{name:?} is no name of a server: a certificate is made for host names and IP addresses")]
    Name {
        /// What was asked for.
        name: String,
        /// Why not.
        source: rcgen::Error,
    },
    /// The system gives no randomness, or a certificate cannot be written.
    #[error("no certificate could be made")]
    Certificate(#[from] rcgen::Error),
    /// A key of our own is not written as it is given out.
    #[error("the key cannot be written")]
    Key(#[from] sec1::der::Error),
    /// A certificate of our own is not taken.
    #[error("the TLS settings are refused")]
    Settings(#[from] rustls::Error),
    /// A root of our own is not taken.
    #[error("the authority is refused as one for clients")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// A certificate or a key that was made elsewhere is not PEM.
    #[error("{what} cannot be read: {why}")]
    Pem {
        /// Which of them.
        what: &'static str,
        /// Why not.
        why: String,
    },
}

/// A certificate authority of one run: made at start, gone at its end.
///
/// Certificates are valid for as long as dates can be written: a test must not fail for its date.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, both as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate.
    pub certificate_pem: String,
    /// Its key, in the form of RFC 5915 (`EC PRIVATE KEY`): fabric8's Java client takes one of PKCS #8 for RSA.
    pub key_pem: String,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// Returns a new CA with a new key (ECDSA P-256).
    ///
    /// # Errors
    /// If the system gives no randomness.
    pub fn generate() -> Result<Self, TlsError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = named("fake-apiserver-ca", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Self { issuer })
    }

    /// The authority's own certificate, for those who are to trust it.
    pub fn certificate_pem(&self) -> String {
        self.issuer.pem()
    }

    /// The authority's own certificate (DER).
    pub fn certificate_der(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// A certificate that names a user: `name` is its CN, `group` its O, as apiserver reads them ("Authenticating",
    /// X509 client certificates). A member of [`ADMINS`](crate::api::access::ADMINS) may do everything.
    ///
    /// # Errors
    /// If the certificate cannot be written.
    pub fn client(&self, name: &str, group: Option<&str>) -> Result<Identity, TlsError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = named(name, group);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity {
            certificate_pem: certificate.pem(),
            key_pem: sec1_pem(&key)?,
        })
    }

    /// A certificate for this machine's local names and `names`, with the authority's own behind it.
    ///
    /// # Errors
    /// If one of `names` is neither a host name nor an IP address.
    pub fn server(&self, names: &[String]) -> Result<Identity, TlsError> {
        let (certificate, key) = self.certified(names)?;
        Ok(Identity {
            certificate_pem: certificate.pem() + &self.certificate_pem(),
            key_pem: sec1_pem(&key)?,
        })
    }

    /// The server's side of handshakes: shows a certificate for this machine's local names and `names`, takes client
    /// certificates of this authority, and lets in who has none.
    ///
    /// # Errors
    /// If one of `names` is neither a host name nor an IP address.
    pub fn acceptor(&self, names: &[String], protocols: Protocols) -> Result<TlsAcceptor, TlsError> {
        let (certificate, key) = self.certified(names)?;
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate_der())?;
        acceptor(
            vec![certificate.der().clone(), self.certificate_der()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            Some(Arc::new(roots)),
            protocols,
        )
    }

    fn certified(&self, names: &[String]) -> Result<(Certificate, KeyPair), TlsError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = named("fake-apiserver", None);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        for name in LOCAL_NAMES.into_iter().chain(names.iter().map(String::as_str)) {
            let named = CertificateParams::new([name.to_owned()]).map_err(|source| TlsError::Name {
                name: name.to_owned(),
                source,
            })?;
            for name in named.subject_alt_names {
                if !params.subject_alt_names.contains(&name) {
                    params.subject_alt_names.push(name);
                }
            }
        }
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok((certificate, key))
    }
}

/// Shows this certificate, takes client certificates of these roots, and lets in who has none; without roots it asks for
/// none.
fn acceptor(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    clients: Option<Arc<RootCertStore>>,
    protocols: Protocols,
) -> Result<TlsAcceptor, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let builder = match clients {
        Some(roots) => builder.with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(roots, provider)
                .allow_unauthenticated()
                .build()?,
        ),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = protocols.alpn();
    // Sessions are not resumed: a handshake costs less than remembering thousands of clients.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// An ECDSA P-256 key as RFC 5915 has it, which names its curve itself.
fn sec1_pem(key: &KeyPair) -> Result<String, sec1::der::Error> {
    let pkcs8 = key.serialize_der();
    let wrapped = PrivateKeyInfoRef::try_from(pkcs8.as_slice()).expect("rcgen writes keys as PKCS #8");
    let mut key = EcPrivateKey::from_der(wrapped.private_key.as_bytes())?;
    key.parameters = wrapped
        .algorithm
        .parameters_oid()
        .ok()
        .map(EcParameters::NamedCurve);
    key.to_pem(LineEnding::LF)
}

fn named(name: &str, group: Option<&str>) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    if let Some(group) = group {
        subject.push(DnType::OrganizationName, group);
    }
    subject.push(DnType::CommonName, name);
    subject
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::sign::CertifiedKey;

    use super::*;

    #[test]
    fn a_client_is_given_a_key_that_names_its_curve_and_fits_its_certificate() {
        let identity = Authority::generate().unwrap().client("a", None).unwrap();
        assert!(identity.key_pem.starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
        let certificate = CertificateDer::from_pem_slice(identity.certificate_pem.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).unwrap();
        let read = EcPrivateKey::from_der(key.secret_der()).unwrap();
        let p256 = sec1::der::oid::ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
        assert_eq!(read.parameters, Some(EcParameters::NamedCurve(p256)));
        let provider = rustls::crypto::ring::default_provider();
        CertifiedKey::from_der(vec![certificate], key, &provider).expect("they are a pair");
    }
}
