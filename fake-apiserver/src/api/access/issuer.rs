//! Signing and verification of service account tokens. It must not know the claims.
//!
//! Source: RFC 7519 (JSON Web Token), RFC 7518 (ES256), RFC 7517 and 7638 (keys and their ids).

use std::sync::OnceLock;

use apimachinery::encode::encode_json;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::ecdsa::signature::{Signer as _, Verifier as _};
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Name of the signature algorithm in tokens and keys.
pub(crate) const ALGORITHM: &str = "ES256";

/// A key, derived at first use.
pub(crate) struct Issuer {
    secret: [u8; 32],
    key: OnceLock<SigningKey>,
}

impl std::fmt::Debug for Issuer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Issuer")
    }
}

impl Issuer {
    /// Returns the issuer whose key is derived from `secret`.
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Self {
            secret,
            key: OnceLock::new(),
        }
    }

    /// Returns an issuer with a predictable key, for servers that authorize everything.
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut secret = [0; 32];
        secret[..8].copy_from_slice(&seed.to_le_bytes());
        Self::new(secret)
    }

    /// Signs claims as a token.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        let head = json!({ "alg": ALGORITHM, "kid": self.key_id() });
        let signed = format!("{}.{}", encoded(&head), encoded(claims));
        let signature: Signature = self.key().sign(signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()))
    }

    /// Returns the claims of a token; `None` if this key did not sign it.
    pub(crate) fn verified(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (head, claims) = signed.split_once('.')?;
        if decoded(head)?["alg"] != ALGORITHM {
            return None;
        }
        let signature = Signature::from_slice(&URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
        let verified = self.key().verifying_key().verify(signed.as_bytes(), &signature);
        verified.ok().and_then(|()| decoded(claims))
    }

    /// Returns the public key, as in `/openid/v1/jwks`.
    pub(crate) fn public_key(&self) -> Value {
        let (x, y) = self.coordinates();
        json!({
            "use": "sig", "kty": "EC", "kid": self.key_id(), "crv": "P-256", "alg": ALGORITHM, "x": x, "y": y,
        })
    }

    fn key_id(&self) -> String {
        let (x, y) = self.coordinates();
        let shown = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        URL_SAFE_NO_PAD.encode(Sha256::digest(shown))
    }

    fn coordinates(&self) -> (String, String) {
        let point = self.key().verifying_key().to_sec1_point(false);
        let text = |coordinate: Option<&[u8]>| URL_SAFE_NO_PAD.encode(coordinate.unwrap_or_default());
        (
            text(point.x().map(|x| x.as_slice())),
            text(point.y().map(|y| y.as_slice())),
        )
    }

    fn key(&self) -> &SigningKey {
        self.key.get_or_init(|| {
            // Nearly every number of that length is a valid key.
            let mut secret = Sha256::digest(self.secret);
            loop {
                match SigningKey::from_slice(&secret) {
                    Ok(key) => return key,
                    Err(_) => secret = Sha256::digest(secret),
                }
            }
        })
    }
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(encode_json(value))
}

fn decoded(text: &str) -> Option<Value> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_signatures_are_valid() {
        let (one, other) = (Issuer::new([1; 32]), Issuer::new([2; 32]));
        let claims = json!({ "sub": "me" });
        let token = one.sign(&claims);
        assert_eq!(one.sign(&claims), token, "chance has no say in it");
        assert_eq!(one.verified(&token), Some(claims));
        assert_eq!(other.verified(&token), None);
        let (head, rest) = token.split_once('.').unwrap();
        let (_, signature) = rest.split_once('.').unwrap();
        let forged = encoded(&json!({ "sub": "you" }));
        assert_eq!(one.verified(&format!("{head}.{forged}.{signature}")), None);
        let unsigned = encoded(&json!({ "alg": "none" }));
        assert_eq!(one.verified(&format!("{unsigned}.{forged}.")), None);
        assert_eq!(one.verified("nobody-has-it"), None);
        assert_eq!(one.public_key()["kid"], decoded(head).unwrap()["kid"]);
    }
}
