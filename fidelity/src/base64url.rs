//! The unpadded, URL-safe base64 that continue tokens are written in.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let mut bits = 0_u32;
    let mut count = 0;
    for byte in text.bytes() {
        let value = ALPHABET.iter().position(|known| *known == byte)?;
        bits = bits << 6 | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(out)
}

pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().enumerate().fold(0_u32, |bits, (index, byte)| bits | u32::from(*byte) << (16 - 8 * index));
        for index in 0..=chunk.len() {
            let value = bits >> (18 - 6 * index) & 0x3f;
            out.push(char::from(ALPHABET[value as usize]));
        }
    }
    out
}
