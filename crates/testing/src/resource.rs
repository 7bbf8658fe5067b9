//! Names of resources as people write them, resolved against those served.

use fake_apiserver::scenario::nearest;

/// Returns the resource in the server's spelling: the plural, and the group after a dot (`pods`, `deployments.apps`).
/// `served` has these names.
///
/// A name whose group has a dot and that is not similar to a served one may be a custom resource created later, and
/// stays as it is.
///
/// # Errors
/// There is no such resource; the message suggests the nearest.
pub(crate) fn resolved(written: &str, served: &[String]) -> Result<String, String> {
    if served.iter().any(|name| name == written) {
        return Ok(written.to_owned());
    }
    let plural = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let mut of_that_plural: Vec<&String> = served.iter().filter(|name| plural(name) == written).collect();
    of_that_plural.sort_unstable();
    of_that_plural.dedup();
    match of_that_plural.as_slice() {
        [one] => return Ok((*one).clone()),
        [] => {}
        many => {
            let many: Vec<&str> = many.iter().map(|name| name.as_str()).collect();
            return Err(format!(
                "`{written}` is a resource of several groups: {}",
                many.join(", ")
            ));
        }
    }
    let plurals: Vec<String> = served.iter().map(|name| plural(name)).collect();
    let candidates = served.iter().chain(&plurals).map(String::as_str);
    // kubectl accepts `pod` and `deployment` as well; paths have the plural.
    match nearest(&written.to_lowercase(), candidates) {
        Some(meant) => Err(format!(
            "no resource `{written}` is served; did you mean `{meant}`?"
        )),
        None if written
            .split_once('.')
            .is_some_and(|(_, group)| group.contains('.')) =>
        {
            Ok(written.to_owned())
        }
        None => Err(format!(
            "no resource `{written}` is served; a resource is written `pods`, `deployments.apps` or \
             `widgets.example.com`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::served("pods", Ok("pods"))]
    #[case::with_its_group("deployments.apps", Ok("deployments.apps"))]
    #[case::without_its_group("deployments", Ok("deployments.apps"))]
    #[case::core_first("events", Ok("events"))]
    #[case::to_come("widgets.example.com", Ok("widgets.example.com"))]
    #[case::singular("pod", Err("no resource `pod` is served; did you mean `pods`?"))]
    #[case::a_kind(
        "ConfigMap",
        Err("no resource `ConfigMap` is served; did you mean `configmaps`?")
    )]
    #[case::a_wrong_group(
        "deployments.app",
        Err("no resource `deployments.app` is served; did you mean `deployments.apps`?")
    )]
    #[case::of_two_groups(
        "twins",
        Err("`twins` is a resource of several groups: twins.a.io, twins.b.io")
    )]
    #[case::nothing_near(
        "zzz",
        Err(
            "no resource `zzz` is served; a resource is written `pods`, `deployments.apps` or `widgets.example.com`"
        )
    )]
    fn a_name_is_resolved(#[case] written: &str, #[case] resolved_to: Result<&str, &str>) {
        let served = [
            "pods",
            "configmaps",
            "events",
            "events.events.k8s.io",
            "deployments.apps",
            "twins.a.io",
            "twins.b.io",
        ];
        let served = served.map(str::to_owned);
        assert_eq!(
            resolved(written, &served),
            resolved_to.map(str::to_owned).map_err(str::to_owned)
        );
    }
}
