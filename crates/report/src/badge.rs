//! Badge as JSON for the endpoint of shields.io. It must not know tests, only the footer.
//!
//! The schema: <https://shields.io/badges/endpoint-badge>.

use serde_json::{Value, json};

use crate::results::Footer;

/// Returns the badge of a run: MUST requirements kept.
pub fn badge(footer: &Footer) -> Value {
    let must = footer.requirements.get("must").copied().unwrap_or_default();
    let (message, color) = match (footer.complete, must.judged) {
        (false, _) => ("interrupted".to_owned(), "lightgrey"),
        (true, 0) => ("not judged".to_owned(), "lightgrey"),
        (true, judged) => {
            let edition = footer.edition.as_ref();
            let edition = edition.map_or(String::new(), |edition| format!(" ({edition})"));
            let message = format!("{}/{judged} MUST{edition}", must.kept);
            let broken = judged - must.kept.min(judged);
            let color = match footer.exit_code {
                // Adapter or harness error: the counts do not measure the client.
                3 | 70 => "lightgrey",
                _ if broken == 0 => "brightgreen",
                _ if broken * 10 <= judged => "yellow",
                _ => "red",
            };
            (message, color)
        }
    };
    json!({"schemaVersion": 1, "label": "watch conformance", "message": message, "color": color})
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::results::{Kept, tests::footer};

    #[rstest]
    #[case::all(true, 0, 20, 20, "20/20 MUST", "brightgreen")]
    #[case::nearly_all(true, 1, 18, 20, "18/20 MUST", "yellow")]
    #[case::few(true, 1, 17, 20, "17/20 MUST", "red")]
    #[case::nothing(true, 4, 0, 0, "not judged", "lightgrey")]
    #[case::interrupted(false, 1, 5, 5, "interrupted", "lightgrey")]
    #[case::harness(true, 70, 20, 20, "20/20 MUST", "lightgrey")]
    fn the_colour_is_that_of_the_client(
        #[case] complete: bool,
        #[case] exit_code: u8,
        #[case] kept: usize,
        #[case] judged: usize,
        #[case] message: &str,
        #[case] color: &str,
    ) {
        let mut footer = footer("client", "1");
        (footer.complete, footer.exit_code) = (complete, exit_code);
        footer
            .requirements
            .insert("must".to_owned(), Kept { kept, judged });
        let badge = badge(&footer);
        assert_eq!(badge["message"], message);
        assert_eq!(badge["color"], color);
        // All required keys, and no key that the endpoint rejects.
        assert_eq!(badge["schemaVersion"], 1);
        let keys: Vec<&String> = badge.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["schemaVersion", "label", "message", "color"]);
    }
}
