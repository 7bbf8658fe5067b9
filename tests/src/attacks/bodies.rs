//! Bodies in protobuf without a JSON equivalent.

use fake_apiserver::api::HttpRequest;

use super::{content_type, post};

/// Returns a definition whose schema nests `not` this many times.
pub fn protobuf_definition(depth: usize) -> HttpRequest {
    let schema = (0..depth).fold(Vec::new(), |below, _| field(28, &below));
    let version = [
        field(1, b"v1"),
        vec![2 << 3, 1, 3 << 3, 1],
        field(4, &field(1, &schema)),
    ]
    .concat();
    let names = [field(1, b"widgets"), field(4, b"Widget")].concat();
    let spec = [
        field(1, b"attack.example.com"),
        field(3, &names),
        field(4, b"Namespaced"),
        field(7, &version),
    ]
    .concat();
    let metadata = field(1, b"widgets.attack.example.com");
    let definition = [field(1, &metadata), field(2, &spec)].concat();
    let types = [
        field(1, b"apiextensions.k8s.io/v1"),
        field(2, b"CustomResourceDefinition"),
    ]
    .concat();
    let envelope = [field(1, &types), field(2, &definition)].concat();
    let mut request = post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        String::new(),
    );
    request.body = [&b"k8s\0"[..], &envelope].concat().into();
    content_type(&mut request, "application/vnd.kubernetes.protobuf");
    request
}

fn field(number: u64, content: &[u8]) -> Vec<u8> {
    let mut out = varint(number << 3 | 2);
    out.extend(varint(content.len() as u64));
    out.extend_from_slice(content);
    out
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let byte = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            out.push(byte);
            return out;
        }
        out.push(byte | 0x80);
    }
}
