//! Continue tokens.

use apimachinery::continue_token::ContinueToken;

/// Tokens of both formats, and invalid text.
pub const SEEDS: &[&[u8]] = &[
    b"eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAwMCwic3RhcnQiOiJkZWZhdWx0L2FcdTAwMDAifQ",
    b"eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiL2EifQ",
    b"{\"v\":\"meta.k8s.io/v1\",\"rv\":7,\"start\":\"/a/../b\"}",
    b"AAAA",
    b"",
];

/// Parses a token, as it is and as the text inside one; a valid token survives a round trip.
pub fn body(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for read in [ContinueToken::decode(&text), ContinueToken::decode(&encoded(bytes))] {
        let Ok(token) = read else { continue };
        let again = ContinueToken::decode(&token.encode());
        assert_eq!(again.as_ref(), Ok(&token), "the round trip changes the token");
        let _ = (token.start_key(), token.inconsistent());
    }
}

/// URL-safe base64 without padding.
fn encoded(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three
            .iter()
            .chain([0, 0].iter())
            .take(3)
            .fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        for place in 0..=three.len() {
            text.push(char::from(ALPHABET[bits >> (18 - 6 * place) & 63]));
        }
    }
    text
}
