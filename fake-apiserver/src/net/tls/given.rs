//! The server's side of handshakes with certificates and keys that were made elsewhere (PEM), as the flags of
//! kube-apiserver name them. It must not read files.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::{Identity, Protocols, TlsError, acceptor};

/// Returns an acceptor that shows `identity` and trusts the client certificates of `client_authorities`; `None`: it asks
/// for none.
///
/// # Errors
/// A text is not PEM, or the key does not belong to the certificate.
pub(crate) fn given(
    identity: &Identity,
    client_authorities: Option<&str>,
    protocols: Protocols,
) -> Result<TlsAcceptor, TlsError> {
    let chain = certificates("the serving certificate", &identity.certificate_pem)?;
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes())
        .map_err(|why| unreadable("the serving key", &why.to_string()))?;
    let roots = client_authorities.map(authorities).transpose()?;
    acceptor(chain, key, roots, protocols)
}

/// Checks that a text holds certificates of authorities.
///
/// # Errors
/// It does not.
pub fn check_authorities(pem: &str) -> Result<(), TlsError> {
    authorities(pem).map(drop)
}

fn authorities(pem: &str) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("the authority of clients", pem)? {
        roots.add(certificate)?;
    }
    Ok(Arc::new(roots))
}

fn certificates(what: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let read = read.map_err(|why| unreadable(what, &why.to_string()))?;
    if read.is_empty() {
        return Err(unreadable(what, "it contains no certificate"));
    }
    Ok(read)
}

fn unreadable(what: &'static str, why: &str) -> TlsError {
    TlsError::Pem {
        what,
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Authority;
    use super::*;

    #[test]
    fn a_certificate_needs_its_own_key() {
        let authority = Authority::generate().unwrap();
        let one = authority.server(&[]).unwrap();
        let other = authority.server(&[]).unwrap();
        let clients = authority.certificate_pem();
        assert!(given(&one, Some(&clients), Protocols::default()).is_ok());
        let mixed = Identity {
            key_pem: other.key_pem,
            ..one.clone()
        };
        assert!(given(&mixed, None, Protocols::default()).is_err());
        let empty = Identity {
            certificate_pem: String::new(),
            ..one
        };
        let refused = given(&empty, None, Protocols::default()).err().unwrap();
        assert_eq!(
            refused.to_string(),
            "the serving certificate cannot be read: it contains no certificate"
        );
        assert!(check_authorities("nothing").is_err());
    }
}
