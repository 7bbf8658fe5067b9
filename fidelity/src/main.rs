//! `fidelity record` writes transcripts of a server; `fidelity compare` plays the same probes against another one and
//! shows the differences.
#![expect(clippy::disallowed_methods, reason = "only prints the duration")]

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use fidelity::{Error, Probe, Remote, Server, Target, load, side_by_side};

const USAGE: &str = "\
usage: fidelity record  --url URL --out DIR [options]
       fidelity compare --url URL --recordings DIR [options]
       fidelity check   [--probes DIR]

  --probes DIR          where the probes are (fidelity/oracle/probes)
  --only TEXT           only probes whose id contains TEXT; may be given more than once
  --ca FILE             the certificate authority of an https URL
  --token TOKEN         of the user who may do everything
  --limited-token TOKEN of the user who may do nothing
  --control URL         where /compact and /restart-apiserver are
  --fixture-is-there    do not put the fixture back before every probe
  --brief               compare: no side-by-side view

exit: 0 identical or recorded, 1 different, 2 something failed";

#[derive(Default)]
struct Arguments {
    command: String,
    url: Option<String>,
    probes: Option<PathBuf>,
    folder: Option<PathBuf>,
    ca: Option<PathBuf>,
    token: Option<String>,
    limited_token: Option<String>,
    control: Option<String>,
    only: Vec<String>,
    fixture_is_there: bool,
    brief: bool,
}

/// `println!`, except that a closed pipe is an error instead of a panic.
macro_rules! say {
    ($($text:tt)*) => {
        writeln!(std::io::stdout(), $($text)*).map_err(|why| Error::caller(format!("standard output: {why}")))?
    };
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(why) => {
            eprintln!("fidelity: {why}");
            ExitCode::from(2)
        }
    }
}

fn arguments() -> Result<Arguments, Error> {
    let mut given = std::env::args().skip(1);
    let mut arguments = Arguments {
        command: given.next().unwrap_or_default(),
        ..Arguments::default()
    };
    while let Some(name) = given.next() {
        match name.as_str() {
            "--brief" => {
                arguments.brief = true;
                continue;
            }
            "--fixture-is-there" => {
                arguments.fixture_is_there = true;
                continue;
            }
            _ => {}
        }
        let value = given
            .next()
            .ok_or_else(|| Error::caller(format!("{name} needs a value\n{USAGE}")))?;
        match name.as_str() {
            "--url" => arguments.url = Some(value),
            "--probes" => arguments.probes = Some(value.into()),
            "--out" | "--recordings" => arguments.folder = Some(value.into()),
            "--ca" => arguments.ca = Some(value.into()),
            "--token" => arguments.token = Some(value),
            "--limited-token" => arguments.limited_token = Some(value),
            "--control" => arguments.control = Some(value),
            "--only" => arguments.only.push(value),
            other => return Err(Error::caller(format!("{other} is not known\n{USAGE}"))),
        }
    }
    Ok(arguments)
}

async fn run() -> Result<bool, Error> {
    let arguments = arguments()?;
    let folder = arguments
        .probes
        .clone()
        .unwrap_or_else(|| "fidelity/oracle/probes".into());
    let probes: Vec<Probe> = load(&folder)?
        .into_iter()
        .filter(|probe| {
            arguments.only.is_empty() || arguments.only.iter().any(|text| probe.id.contains(text))
        })
        .collect();
    match arguments.command.as_str() {
        "check" => {
            say!("{} probes, all readable", probes.len());
            Ok(true)
        }
        "record" | "compare" => play_all(&arguments, &probes).await,
        _ => Err(Error::caller(USAGE)),
    }
}

async fn play_all(arguments: &Arguments, probes: &[Probe]) -> Result<bool, Error> {
    let needed = |what: &str| Error::caller(format!("{what} is needed\n{USAGE}"));
    let url = arguments.url.as_deref().ok_or_else(|| needed("--url"))?;
    let folder = arguments
        .folder
        .as_deref()
        .ok_or_else(|| needed("--out or --recordings"))?;
    let target = Target::new(
        url,
        arguments.ca.as_deref(),
        arguments.token.clone(),
        arguments.limited_token.clone(),
    )?;
    let control = arguments
        .control
        .as_deref()
        .map(|url| Target::new(url, None, None, None))
        .transpose()?;
    let mut server = Server::Remote(Box::new(Remote::new(target, control, arguments.fixture_is_there)));
    let record = arguments.command == "record";
    if record {
        std::fs::create_dir_all(folder).map_err(|why| Error::file(folder, &why))?;
    }

    let began = Instant::now();
    let (mut done, mut different, mut failed) = (0, 0, 0);
    for probe in probes {
        let file = folder.join(format!("{}.txt", probe.id));
        let text = match fidelity::transcript(probe, &mut server).await {
            Ok(text) => text,
            Err(why) => {
                failed += 1;
                say!("failed     {}: {why}", probe.id);
                continue;
            }
        };
        if record {
            done += 1;
            std::fs::write(&file, text).map_err(|why| Error::file(&file, &why))?;
            say!("recorded   {}", probe.id);
            continue;
        }
        let recorded = match std::fs::read_to_string(&file) {
            Ok(recorded) => recorded,
            Err(why) => {
                failed += 1;
                say!("failed     {}: {}", probe.id, Error::file(&file, &why));
                continue;
            }
        };
        done += 1;
        if recorded == text {
            say!("identical  {}", probe.id);
        } else {
            different += 1;
            say!("different  {}", probe.id);
            if !arguments.brief {
                say!("{}", side_by_side(&recorded, &text));
            }
        }
    }
    let seconds = began.elapsed().as_secs();
    if record {
        say!("{done} recorded, {failed} failed, in {seconds} s");
    } else {
        say!(
            "{} identical, {different} different, {failed} failed, in {seconds} s",
            done - different
        );
    }
    if failed > 0 {
        return Err(Error::server(format!("{failed} probes could not be played")));
    }
    Ok(different == 0)
}
