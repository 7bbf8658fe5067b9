//! `--record`: the trace of a server in a file, as it grows, or its newest part once a client does something wrong.
//!
//! It must not know what is recorded, nor what is wrong.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use fake_apiserver::content::Kept;
use fake_apiserver::record::Record;
use recording::{Header, write_header, write_record, write_records};

use crate::words::size;
use crate::{Failure, output, private};

/// Options of a recording.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Recording")]
pub(crate) struct RecordArguments {
    /// Record requests, responses and writes in this new file.
    ///
    /// A line of JSON per record, readable by this user only: versions and names, no content, no credentials. `fake-apiserver
    /// scenario from FILE` makes a scenario of it.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Also record the content of objects; never that of Secrets.
    ///
    /// Other objects may hold what nobody else should read: environment variables, ConfigMaps, annotations. See --redact.
    #[arg(long, requires = "record")]
    pub(crate) record_content: bool,
    /// Leave this field of objects out, e.g. metadata.annotations (repeatable).
    ///
    /// A path of names; arrays on the way are entered: spec.template.spec.containers.env. For example metadata.managedFields,
    /// which makes objects much longer.
    #[arg(long, value_name = "FIELD", requires = "record_content")]
    pub(crate) redact: Vec<String>,
    /// Keep the newest records up to this size, e.g. 64MiB, for a violation.
    ///
    /// The file is created at the first violation, with what led to it; what follows is added up to the same size. Without a
    /// violation there is no file.
    #[arg(long, value_name = "SIZE", requires = "record", value_parser = size)]
    pub(crate) record_last: Option<u64>,
}

impl RecordArguments {
    /// Returns what the trace keeps of content; `None`: nothing.
    ///
    /// # Errors
    /// A field is no path.
    pub(crate) fn kept(&self) -> Result<Option<Kept>, Failure> {
        match self.record_content {
            true => kept(&self.redact).map(Some),
            false => Ok(None),
        }
    }

    /// Opens the file for the recordings of several servers, one after the other; `None` if none is wanted.
    ///
    /// # Errors
    /// The file exists already, or cannot be created.
    pub(crate) fn open_parts(&self) -> Result<Option<Parts>, Failure> {
        let Some(path) = &self.record else {
            return Ok(None);
        };
        let file = match self.record_last {
            Some(_) => private::check_new(path).map(|()| None)?,
            None => Some(private::create(path)?),
        };
        Ok(Some(Parts {
            arguments: self.clone(),
            path: path.clone(),
            file,
        }))
    }

    /// Opens the file; `None` if none is wanted.
    ///
    /// # Errors
    /// The file exists already, or cannot be created.
    pub(crate) fn open(&self, mut header: Header) -> Result<Option<Recorder>, Failure> {
        let Some(path) = &self.record else {
            return Ok(None);
        };
        self.complete(&mut header);
        let mut beginning = Vec::new();
        write_header(&header, &mut beginning).expect("memory takes every byte");
        let target = match self.record_last {
            Some(max) => {
                private::check_new(path)?;
                Target::Newest(beginning, Newest::of(max))
            }
            None => Target::open(path, &beginning)?,
        };
        Ok(Some(Recorder {
            path: path.clone(),
            target,
            failed: None,
        }))
    }

    fn complete(&self, header: &mut Header) {
        header.content = self.record_content;
        header.redacted.clone_from(&self.redact);
    }
}

/// Returns what `--redact` keeps of objects.
///
/// # Errors
/// A field is no path.
pub(crate) fn kept(redact: &[String]) -> Result<Kept, Failure> {
    Kept::without(redact).map_err(|field| {
        Failure::Usage(format!(
            "--redact {field}: expected a path of names, such as metadata.annotations"
        ))
    })
}

/// Writes the recordings of several servers to one file.
pub(crate) struct Parts {
    arguments: RecordArguments,
    path: PathBuf,
    file: Option<File>,
}

impl Parts {
    /// Adds a whole trace. `is_wrong`: it proves a violation; with `--record-last` others are left out.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn add(
        &mut self,
        mut header: Header,
        records: &[Record],
        is_wrong: bool,
    ) -> Result<(), Failure> {
        if self.arguments.record_last.is_some() && !is_wrong {
            return Ok(());
        }
        self.arguments.complete(&mut header);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(private::create(&self.path)?),
        };
        let mut out = BufWriter::new(file);
        let written = write_header(&header, &mut out)
            .and_then(|()| match self.arguments.record_last {
                Some(max) => {
                    let mut newest = Newest::of(max);
                    records.iter().try_for_each(|record| newest.push(record))?;
                    newest.write(&mut out)
                }
                None => write_records(records, &mut out),
            })
            .and_then(|()| out.flush());
        written.map_err(|error| unwritten(&self.path, error))
    }
}

/// Writes a recording.
pub(crate) struct Recorder {
    path: PathBuf,
    target: Target,
    /// Why nothing more is written.
    failed: Option<io::Error>,
}

enum Target {
    /// The file, and how much more it takes; `None`: everything.
    File(BufWriter<File>, Option<u64>),
    /// The first line, and the newest ones, until something is wrong.
    Newest(Vec<u8>, Newest),
}

/// The newest lines, up to a size.
struct Newest {
    lines: VecDeque<Vec<u8>>,
    bytes: u64,
    max: u64,
}

impl Newest {
    fn of(max: u64) -> Self {
        Self {
            lines: VecDeque::new(),
            bytes: 0,
            max,
        }
    }

    fn push(&mut self, record: &Record) -> io::Result<()> {
        let mut line = Vec::new();
        write_record(record, &mut line)?;
        self.bytes += line.len() as u64;
        self.lines.push_back(line);
        while self.bytes > self.max
            && let Some(oldest) = self.lines.pop_front()
        {
            self.bytes -= oldest.len() as u64;
        }
        Ok(())
    }

    fn write(&self, mut out: impl io::Write) -> io::Result<()> {
        self.lines.iter().try_for_each(|line| out.write_all(line))
    }
}

impl Target {
    fn open(path: &Path, beginning: &[u8]) -> Result<Self, Failure> {
        let mut file = private::create(path)?;
        file.write_all(beginning)
            .map_err(|error| unwritten(path, error))?;
        Ok(Self::File(BufWriter::new(file), None))
    }
}

impl Recorder {
    /// Records the next records. `is_wrong`: one of them proves a violation. A full disk ends the recording, not the server.
    pub(crate) fn hear(&mut self, records: &[Record], is_wrong: bool) {
        if self.failed.is_some() || records.is_empty() && !is_wrong {
            return;
        }
        if let Err(error) = self.take(records, is_wrong) {
            output::log(&format!(
                "warning: {} is not complete, because it cannot be written: {error}",
                self.path.display()
            ));
            self.failed = Some(error);
        }
    }

    fn take(&mut self, records: &[Record], is_wrong: bool) -> io::Result<()> {
        match &mut self.target {
            Target::File(file, room) => {
                append(file, records, room)?;
                file.flush()
            }
            Target::Newest(_, newest) => {
                records.iter().try_for_each(|record| newest.push(record))?;
                if is_wrong { self.keep("violation") } else { Ok(()) }
            }
        }
    }

    /// Writes the newest records, if the file has none yet. `cause`: what they led to.
    fn keep(&mut self, cause: &str) -> io::Result<()> {
        let Target::Newest(beginning, newest) = &self.target else {
            return Ok(());
        };
        let mut file = BufWriter::new(private_files::create(&self.path)?);
        file.write_all(beginning)?;
        newest.write(&mut file)?;
        file.flush()?;
        output::log(&format!(
            "recorded what led to the {cause}: {}",
            self.path.display()
        ));
        self.target = Target::File(file, Some(newest.max));
        Ok(())
    }

    /// Ends the recording, after the server. `is_broken`: the server has failed, which is wrong, too.
    ///
    /// # Errors
    /// The file is not complete.
    pub(crate) fn finish(mut self, is_broken: bool) -> Result<(), Failure> {
        if is_broken && self.failed.is_none() {
            self.failed = self.keep("failure of the server").err();
        }
        match self.failed {
            Some(error) => Err(unwritten(&self.path, error)),
            None => Ok(()),
        }
    }
}

/// Adds records while there is room.
fn append(file: &mut BufWriter<File>, records: &[Record], room: &mut Option<u64>) -> io::Result<()> {
    let Some(room) = room else {
        return write_records(records, file);
    };
    let mut line = Vec::new();
    for record in records {
        line.clear();
        write_record(record, &mut line)?;
        *room = room.saturating_sub(line.len() as u64);
        if *room == 0 {
            return Ok(());
        }
        file.write_all(&line)?;
    }
    Ok(())
}

fn unwritten(path: &Path, error: io::Error) -> Failure {
    Failure::System(format!("{} is not complete", path.display()), error)
}
