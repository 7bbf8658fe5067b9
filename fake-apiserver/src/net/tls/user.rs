//! User named by a verified client certificate. It relies on the verification, and decides no permissions.

use rustls::pki_types::CertificateDer;
use sha2::{Digest as _, Sha256};
use x509_cert::Certificate;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::Decode as _;
use x509_cert::der::asn1::{PrintableStringRef, Utf8StringRef};
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::oid::db::rfc4519::{CN, O};

use crate::api::User;
use crate::api::access::{AUTHENTICATED, CREDENTIAL_ID};

/// The user: its name is the CN, its groups are every O, in order, and what tells it apart is the certificate's digest
/// ("Authenticating", X509 client certificates). `None` for a certificate without a name.
pub(crate) fn named_by(certificate: &CertificateDer<'_>) -> Option<User> {
    let digest: String = Sha256::digest(certificate)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let certificate = Certificate::from_der(certificate).ok()?;
    let subject = certificate.tbs_certificate().subject();
    let every = |wanted: ObjectIdentifier| {
        subject
            .iter()
            .filter(move |attribute| attribute.oid == wanted)
            .filter_map(text)
    };
    let name = every(CN).last().filter(|name| !name.is_empty())?;
    Some(User {
        name,
        uid: String::new(),
        groups: every(O).chain([AUTHENTICATED.to_owned()]).collect(),
        extra: [(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={digest}")])].into(),
    })
}

fn text(attribute: &AttributeTypeAndValue) -> Option<String> {
    let value = &attribute.value;
    // Of the ways to write a name (RFC 5280, DirectoryString), those that any tool of our day uses.
    let utf8 = Utf8StringRef::try_from(value).map(|text| text.as_str().to_owned());
    utf8.or_else(|_| PrintableStringRef::try_from(value).map(|text| text.as_str().to_owned()))
        .ok()
}
