//! Errors for the `resourceVersion` of a read: compacted, in the future, or not a number.

use super::{Cause, Details, Status};

impl Status {
    /// 410 of an exact list below the compacted revision.
    pub fn expired_list() -> Self {
        Self::new(
            410,
            "Expired",
            "The resourceVersion for the provided list is too old.",
        )
    }

    /// 410 of a continue token below the compacted revision; `inconsistent` is the token that continues at the newest
    /// revision.
    pub fn expired_continue(inconsistent: Option<&str>) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a \
                       new list without the continue parameter";
        match inconsistent {
            None => Self::new(410, "Expired", format!("{message}.")),
            Some(token) => Self {
                continue_token: token.to_owned(),
                ..Self::new(
                    410,
                    "Expired",
                    format!(
                        "{message}, or use the continue token in this response to retrieve the remainder of the \
                         results. Continuing with the provided token results in an inconsistent list - objects that \
                         were created, modified, or deleted between the time the first chunk was returned and now may \
                         show up in the list."
                    ),
                )
            },
        }
    }

    /// 410 of a watch that starts before `oldest`, the oldest revision its watch cache can start from.
    pub fn expired_watch(requested: u64, oldest: u64) -> Self {
        Self::new(
            410,
            "Expired",
            format!("too old resource version: {requested} ({oldest})"),
        )
    }

    /// 410 of a watch on a resource without watch cache, after compaction.
    pub fn expired_etcd_watch() -> Self {
        Self::new(
            410,
            "Expired",
            "The resourceVersion for the provided watch is too old.",
        )
    }

    /// 500: a `resourceVersion` that is not a number, on a watch or a single object.
    pub fn unreadable_version(error: &str) -> Self {
        Self::new(500, "", error)
    }

    /// 504: the requested revision has not been reached. A watch cache sends a retry delay, etcd does not.
    pub fn too_large(requested: u64, current: u64, retry_after_seconds: u32) -> Self {
        Self::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {requested}, current: {current}"),
        )
        .with_details(Details {
            causes: vec![Cause {
                reason: "ResourceVersionTooLarge".to_owned(),
                message: "Too large resource version".to_owned(),
                field: String::new(),
            }],
            retry_after_seconds,
            ..Details::default()
        })
    }
}
