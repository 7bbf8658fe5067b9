//! Authentication and authorization as kubectl shows them.

use e2e::kubectl::Kubectl;
use e2e::server::Server;
use e2e::toolchain::or_skip;
use rstest::rstest;

use super::squeezed;

const TOKEN: &[&str] = &["--tls", "--token", "secret"];

#[rstest]
#[case::admin(TOKEN, &["auth", "can-i", "create", "pods"], true, "yes")]
#[case::anybody(&[], &["auth", "can-i", "create", "pods"], true, "yes")]
#[case::another(TOKEN, &["auth", "can-i", "create", "pods", "--as=bob"], false, "no")]
#[case::a_path(TOKEN, &["auth", "can-i", "get", "/version", "--as=bob"], true, "yes")]
#[case::an_admin_of_another_name(TOKEN, &["auth", "can-i", "delete", "nodes", "--as=bob", "--as-group=system:masters"], true, "yes")]
#[case::all_of_it(&[], &["auth", "can-i", "--list", "--no-headers"], true, "*.* [] [] [*] [*] [] [*]")]
#[case::whoami(TOKEN, &["auth", "whoami"], true, "ATTRIBUTE VALUE Username admin UID admin Groups [system:masters system:authenticated]")]
#[case::whoami_not(&[], &["auth", "whoami"], true, "ATTRIBUTE VALUE Username system:anonymous Groups [system:unauthenticated]")]
#[case::whoami_as_another(TOKEN, &["auth", "whoami", "--as=bob", "--as-group=g"], true, "ATTRIBUTE VALUE Username bob Groups [g system:authenticated]")]
fn auth_can_i_and_whoami(
    #[case] options: &[&str],
    #[case] arguments: &[&str],
    #[case] success: bool,
    #[case] printed: &str,
) {
    let server = Server::start("serve", options);
    let Some(kubectl) = or_skip(Kubectl::new(&server)) else {
        return;
    };
    let outcome = kubectl.run(arguments);
    // For a cluster-scoped resource a warning precedes the output.
    let output = outcome
        .out
        .replace("Warning: resource 'nodes' is not namespace scoped\n\n", "");
    assert_eq!(
        (outcome.success, squeezed(&output).as_str()),
        (success, printed),
        "{}",
        outcome.err
    );
}

#[test]
fn without_a_token_kubectl_prints_that_there_is_no_authorization() {
    let server = Server::start("serve", &[]);
    let Some(kubectl) = or_skip(Kubectl::new(&server)) else {
        return;
    };
    let outcome = kubectl.run(&["auth", "can-i", "list", "pods", "--as=bob"]);
    assert_eq!((outcome.success, outcome.out.as_str()), (true, "yes\n"));
    let warning = "Warning: there is no authorization (mode AlwaysAllow): everybody may do everything";
    assert!(outcome.err.starts_with(warning), "{}", outcome.err);
}

#[test]
fn impersonation_has_the_rights_of_the_other_user() {
    let server = Server::start("serve", TOKEN);
    let Some(kubectl) = or_skip(Kubectl::new(&server)) else {
        return;
    };
    kubectl.ok(&["get", "pods"]);
    let outcome = kubectl.run(&["get", "pods", "--as=bob"]);
    assert!(!outcome.success);
    assert_eq!(
        outcome.err,
        "Error from server (Forbidden): pods is forbidden: User \"bob\" cannot list resource \"pods\" in API group \
         \"\" in the namespace \"default\"\n"
    );
}

#[test]
fn a_token_of_a_service_account_lets_it_in() {
    let server = Server::start("serve", TOKEN);
    let Some(kubectl) = or_skip(Kubectl::new(&server)) else {
        return;
    };
    let refused = kubectl.run(&["create", "token", "robot"]);
    assert_eq!(
        refused.err,
        "error: failed to create token: serviceaccounts \"robot\" not found\n"
    );
    kubectl.ok(&["create", "serviceaccount", "robot"]);
    let token = kubectl.ok(&["create", "token", "robot", "--duration=20m"]);
    let whoami = kubectl.ok(&[
        "auth",
        "whoami",
        "--token",
        token.trim(),
        "-o",
        "jsonpath={.status.userInfo.username}",
    ]);
    assert_eq!(whoami, "system:serviceaccount:default:robot");
    let refused = kubectl.run(&["get", "pods", "--token", token.trim()]);
    assert!(
        refused
            .err
            .contains("User \"system:serviceaccount:default:robot\" cannot list resource \"pods\""),
        "{}",
        refused.err
    );
}
