//! TLS as clients see it: which credentials of a kubeconfig are accepted, and which listener settings are rejected.

#![expect(clippy::unwrap_used, reason = "the helpers of a test may fail it")]

use std::net::SocketAddr;
use std::time::Duration;

use conformance::drive::pipe::pipe;
use fake_apiserver::api::Access;
use fake_apiserver::net::tls::{Authority, Protocols};
use fake_apiserver::net::{
    ConnectionSettings, Credentials, Edge, Listening, ServeError, ServeOptions, TlsOptions, serve_connection,
};
use fake_apiserver::scenario::ServerSettings;
use fake_apiserver::server::Server;
use k8s_openapi::api::core::v1::Namespace;
use kube_client::api::ListParams;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Api, Client, Config};
use rstest::rstest;
use tokio::io::AsyncReadExt as _;

const TOKEN: &str = "correct horse";

fn access() -> Access {
    Access {
        token: TOKEN.to_owned(),
        limited_token: None,
        signing_secret: [0; 32],
    }
}

fn options() -> ServeOptions {
    ServeOptions {
        tls: Some(TlsOptions::default()),
        access: Some(access()),
        ..ServeOptions::default()
    }
}

/// Serves an empty cluster, with token and client certificate, while the runtime lives.
async fn serving(options: ServeOptions) -> (Listening, Edge) {
    let server = Server::standalone(ServerSettings::default(), 0).with_access(access());
    (options.bind().await.unwrap(), Edge::new(server))
}

/// Returns the result of listing namespaces with a kubeconfig.
async fn asked_with(kubeconfig: &str) -> String {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    config.default_retry = false;
    let namespaces: Api<Namespace> = Api::all(Client::try_from(config).unwrap());
    match namespaces.list(&ListParams::default()).await {
        Ok(list) => format!("{} namespaces", list.items.len()),
        Err(kube_client::Error::Api(status)) => format!("{} {}", status.code, status.message),
        Err(_) => "no connection".to_owned(),
    }
}

enum As {
    Nobody,
    Token(&'static str),
    Certified(&'static str, Option<&'static str>),
    CertifiedByAnother,
}

#[rstest]
#[case::nobody(
    As::Nobody,
    "403 namespaces is forbidden: User \"system:anonymous\" cannot list resource \"namespaces\" in API group \"\" at the cluster scope"
)]
#[case::the_token(As::Token(TOKEN), "4 namespaces")]
#[case::another_token(As::Token("correct hors"), "401 Unauthorized")]
#[case::an_admin(As::Certified("alice", Some("system:masters")), "4 namespaces")]
#[case::someone_else(
    As::Certified("bob", Some("dev")),
    "403 namespaces is forbidden: User \"bob\" cannot list resource \"namespaces\" in API group \"\" at the cluster scope"
)]
#[case::someone_of_no_group(
    As::Certified("eve", None),
    "403 namespaces is forbidden: User \"eve\" cannot list resource \"namespaces\" in API group \"\" at the cluster scope"
)]
#[case::someone_another_authority_knows(As::CertifiedByAnother, "no connection")]
#[tokio::test]
async fn a_kubeconfig_gives_the_user(#[case] who: As, #[case] expected: &str) {
    let (listening, edge) = serving(options()).await;
    let authority = listening.authority().unwrap();
    let credentials = match who {
        As::Nobody => Credentials::None,
        As::Token(token) => Credentials::Token(token.to_owned()),
        As::Certified(name, group) => Credentials::Certificate(authority.client(name, group).unwrap()),
        As::CertifiedByAnother => {
            let another = Authority::generate().unwrap();
            Credentials::Certificate(another.client("mallory", Some("system:masters")).unwrap())
        }
    };
    let kubeconfig = listening.kubeconfig(credentials, None).text();
    tokio::spawn(listening.serve(edge, std::future::pending()));
    assert_eq!(asked_with(&kubeconfig).await, expected);
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_trusted() {
    let (listening, edge) = serving(options()).await;
    let mut kubeconfig = listening.kubeconfig(Credentials::Token(TOKEN.to_owned()), None);
    kubeconfig.authority_pem = Some(Authority::generate().unwrap().certificate_pem());
    tokio::spawn(listening.serve(edge, std::future::pending()));
    assert_eq!(asked_with(&kubeconfig.text()).await, "no connection");
}

#[tokio::test]
async fn without_tls_the_kubeconfig_needs_no_authority() {
    let (listening, edge) = serving(ServeOptions {
        tls: None,
        ..options()
    })
    .await;
    assert!(listening.url().starts_with("http://127.0.0.1:"));
    let kubeconfig = listening
        .kubeconfig(Credentials::Token(TOKEN.to_owned()), None)
        .text();
    tokio::spawn(listening.serve(edge, std::future::pending()));
    assert_eq!(asked_with(&kubeconfig).await, "4 namespaces");
}

#[rstest]
#[case::this_machine("127.0.0.1:0", false, false, true)]
#[case::this_machine_over_ip_6("[::1]:0", false, false, true)]
#[case::everywhere("0.0.0.0:0", false, false, false)]
#[case::everywhere_with_a_token("0.0.0.0:0", false, true, false)]
#[case::everywhere_with_tls("0.0.0.0:0", true, false, false)]
#[case::everywhere_with_both("0.0.0.0:0", true, true, true)]
#[tokio::test]
async fn beyond_this_machine_takes_tls_and_a_token(
    #[case] address: &str,
    #[case] tls: bool,
    #[case] token: bool,
    #[case] allowed: bool,
) {
    let address: SocketAddr = address.parse().unwrap();
    let bound = ServeOptions {
        address,
        tls: tls.then(TlsOptions::default),
        access: token.then(access),
        ..ServeOptions::default()
    }
    .bind()
    .await;
    match bound {
        Ok(listening) => {
            assert!(allowed);
            assert_eq!(listening.address().ip(), address.ip());
        }
        Err(ServeError::NotLoopback(_)) => assert!(!allowed),
        // A host without IPv6 has no ::1.
        Err(ServeError::Bind(..)) => assert!(address.is_ipv6()),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn what_is_no_host_name_gets_no_certificate() {
    let bound = ServeOptions {
        tls: Some(TlsOptions {
            names: vec!["example.com".to_owned(), "ex\u{e4}mple".to_owned()],
            ..TlsOptions::default()
        }),
        ..ServeOptions::default()
    }
    .bind()
    .await;
    let message = bound.unwrap_err().to_string();
    assert!(
        message.starts_with("\"ex\u{e4}mple\" is no name of a server"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn who_never_shakes_hands_is_let_go() {
    let edge = Edge::new(Server::standalone(ServerSettings::default(), 0));
    let acceptor = Authority::generate()
        .unwrap()
        .acceptor(&[], Protocols::default())
        .unwrap();
    let settings = ConnectionSettings {
        tls: Some(acceptor),
        ..ConnectionSettings::default()
    };
    let limit = settings.limits.handshake;
    let conn = edge.accept().unwrap();
    let (mut near, far) = pipe();
    tokio::spawn(serve_connection(
        edge.clone(),
        conn,
        far,
        settings,
        std::future::pending(),
    ));
    let mut read = Vec::new();
    near.read_to_end(&mut read).await.unwrap();
    assert!(read.is_empty());
    edge.deserted().await;
    assert!(edge.elapsed() >= limit && edge.elapsed() < limit + Duration::from_secs(1));
}
