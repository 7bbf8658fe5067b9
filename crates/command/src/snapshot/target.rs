//! Where a snapshot is written: one file, or a folder with a file for each resource. It must not know what is read.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::format::HEAD_FILE;
use crate::{Failure, private};

/// A new file or folder.
pub(crate) struct Target {
    path: PathBuf,
    /// File of the header and the end, and of all objects unless there is a folder.
    head: Part,
    /// Folder: the file of the resource that is being read, once it has an object.
    of_resource: Option<Part>,
    /// Folder: the name of that file.
    next: Option<PathBuf>,
    /// Everything that was created.
    created: Vec<PathBuf>,
}

struct Part {
    path: PathBuf,
    file: BufWriter<File>,
}

/// A place to go back to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark(u64);

impl Target {
    /// Creates it: a file if the name ends in `.json`, else a folder.
    ///
    /// # Errors
    /// Something has that name; a system error.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let is_folder = path.extension().is_none_or(|ending| ending != "json");
        let mut created = Vec::new();
        let file = if is_folder {
            private::create_folder(path)?;
            created.push(path.to_owned());
            path.join(HEAD_FILE)
        } else {
            path.to_owned()
        };
        let head = Part::create(&file)?;
        created.push(file);
        Ok(Self {
            path: path.to_owned(),
            head,
            of_resource: None,
            next: is_folder.then(|| path.join(HEAD_FILE)),
            created,
        })
    }

    /// Checks, before long work, that it can be created.
    ///
    /// # Errors
    /// Something has that name, or its folder does not exist.
    pub(crate) fn check(path: &Path) -> Result<(), Failure> {
        private::check_new(path)
    }

    /// Writes header or end.
    ///
    /// # Errors
    /// A system error.
    pub(crate) fn head(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        self.head.line(line)
    }

    /// Begins the objects of a resource.
    ///
    /// # Errors
    /// A system error.
    pub(crate) fn begin(&mut self, resource: &str) -> Result<Mark, Failure> {
        if self.next.is_none() {
            let at = self.head.file.stream_position();
            return at.map(Mark).map_err(|error| self.head.unwritten(error));
        }
        self.close()?;
        self.next = Some(self.path.join(format!("{resource}.json")));
        Ok(Mark(0))
    }

    /// Writes an object of the resource.
    ///
    /// # Errors
    /// A system error.
    pub(crate) fn object(&mut self, object: &impl Serialize) -> Result<(), Failure> {
        let Some(path) = &self.next else {
            return self.head.line(object);
        };
        let part = match &mut self.of_resource {
            Some(part) => part,
            none => {
                let part = Part::create(path)?;
                self.created.push(path.clone());
                none.insert(part)
            }
        };
        part.line(object)
    }

    /// Drops what was written since `mark` of the same resource.
    ///
    /// # Errors
    /// A system error.
    pub(crate) fn go_back(&mut self, mark: Mark) -> Result<(), Failure> {
        match (&mut self.of_resource, &self.next) {
            (Some(part), _) => part.cut(mark.0),
            (None, None) => self.head.cut(mark.0),
            (None, Some(_)) => Ok(()),
        }
    }

    /// Drops everything.
    ///
    /// # Errors
    /// A system error.
    pub(crate) fn start_over(&mut self) -> Result<(), Failure> {
        self.go_back(Mark(0))?;
        self.head.cut(0)
    }

    /// Completes it.
    ///
    /// # Errors
    /// A system error.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.close()?;
        self.head.flush()
    }

    /// Removes what was written: it is not complete.
    pub(crate) fn remove(self) {
        for path in self.created.iter().rev() {
            let removed = match path.is_dir() {
                true => std::fs::remove_dir(path),
                false => std::fs::remove_file(path),
            };
            if let Err(error) = removed {
                tracing::warn!(%error, path = %path.display(), "an incomplete file stays");
            }
        }
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.of_resource.take().map_or(Ok(()), |mut part| part.flush())
    }
}

impl Part {
    fn create(path: &Path) -> Result<Self, Failure> {
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 18, private::create(path)?),
        })
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let written = serde_json::to_writer(&mut self.file, value).map_err(io::Error::from);
        written
            .and_then(|()| self.file.write_all(b"\n"))
            .map_err(|error| self.unwritten(error))
    }

    fn cut(&mut self, at: u64) -> Result<(), Failure> {
        let cut = self.file.flush();
        cut.and_then(|()| self.file.get_ref().set_len(at))
            .and_then(|()| self.file.seek(io::SeekFrom::Start(at)).map(|_| ()))
            .map_err(|error| self.unwritten(error))
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.file.flush().map_err(|error| self.unwritten(error))
    }

    fn unwritten(&self, error: io::Error) -> Failure {
        Failure::System(format!("{} is not complete", self.path.display()), error)
    }
}
