//! Where an error becomes a message, a hint and an exit code: the only such place.
//!
//! Each module keeps its own error type; the `From` below gives each of them its words and its code. A command that
//! fails returns a [`Failure`]; it prints nothing itself.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::client::ClientError;
use crate::config::ConfigError;
use crate::driver::DriverError;
use crate::lifecycle::adopt::{LookError, TakeError};
use crate::process::ProcessError;
use crate::service::ServiceError;
use crate::store::StoreError;
use crate::tmux::Unanswered;
use crate::tmux::listing::ListError;

/// The exit code of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(u8);

impl Exit {
    /// Done.
    pub const OK: Self = Self(0);
    /// It was tried and did not work.
    pub const FAILED: Self = Self(1);
    /// `ait record`: wrong arguments, as the format it shares has it.
    pub const RECORD_USAGE: Self = Self(2);
    /// `freeze`, `restore`, `recover`, `drop`: another operation holds the record's lease; nothing was done.
    pub const LEASE_HELD: Self = Self(8);
    /// `freeze`, `restore`, `recover`, `drop`, `send`: refused for a named reason; nothing was done.
    pub const REFUSED: Self = Self(12);
    /// `restore`, `recover`: done, but not proven; captures are kept.
    pub const UNVERIFIED: Self = Self(15);
    /// `send`: written, and still in the prompt line.
    pub const TYPED: Self = Self(10);
    /// `send`: nobody knows what became of it.
    pub const UNCONFIRMED: Self = Self(11);
    /// `wait`, `run --wait`: it did not come in time.
    pub const NOT_IN_TIME: Self = Self(13);
    /// `wait`: it cannot come, the session is gone.
    pub const SESSION_GONE: Self = Self(14);
    /// `ait status`, `ait doctor`: up, and something needs a look.
    pub const DEGRADED: Self = Self(10);
    /// `ait status`: no supervisor runs.
    pub const NO_SUPERVISOR: Self = Self(11);
    /// Wrong arguments.
    pub const USAGE: Self = Self(64);
    /// A file or an answer that cannot be read as what it should be.
    pub const BAD_DATA: Self = Self(65);
    /// Something that is needed is not there or does not answer.
    pub const UNAVAILABLE: Self = Self(69);
    /// A fault of `ait` itself.
    pub const INTERNAL: Self = Self(70);

    /// A code a contract names with its number (`ait record`: 3 to 8).
    #[must_use]
    pub const fn code(code: u8) -> Self {
        Self(code)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}

/// Why a command failed, in words for the one who called it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    message: String,
    hint: Option<String>,
    exit: Exit,
    /// The reader of our output went away: nothing to say, nothing failed.
    quiet: bool,
}

impl Failure {
    /// A failure with the code `exit`; `message` is a lower-case fragment with the path or id inside.
    #[must_use]
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit, quiet: false }
    }

    /// The same failure with a line that says what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The failure of an error, with every cause behind it in one line.
    #[must_use]
    pub fn of(exit: Exit, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            let words = inner.to_string();
            // many errors already carry their cause's words
            if !message.contains(&words) {
                message.push_str(": ");
                message.push_str(&words);
            }
            cause = inner.source();
        }
        Self::new(exit, message)
    }

    /// The exit code.
    pub(super) fn exit(&self) -> Exit {
        self.exit
    }

    /// What happened, in one line.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// What may be done about it, where that is known.
    pub(super) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Prints the message and the hint to standard error and gives the exit code.
    pub(super) fn report(&self) -> Exit {
        if !self.quiet {
            // with standard error closed there is nobody left to tell
            let _ = write!(io::stderr(), "{self}");
        }
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "ait: {}", self.message)?;
        match &self.hint {
            Some(hint) => writeln!(f, "hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (exit, hint) = match &error {
            StoreError::Busy { .. } => (Exit::UNAVAILABLE, Some("another ait is writing; try again")),
            StoreError::Corrupt { .. } | StoreError::BadRecords { .. } => {
                (Exit::BAD_DATA, Some("`ait store repair` shows what can be put right"))
            }
            StoreError::Newer { .. } => (Exit::BAD_DATA, Some("a newer ait wrote it; use that one")),
            StoreError::Io { .. } => (Exit::FAILED, None),
            StoreError::NotOurs { .. } => (Exit::UNAVAILABLE, None),
            StoreError::NoHome => (Exit::UNAVAILABLE, Some("run it with HOME set, as a login shell has it")),
        };
        let failure = Self::of(exit, &error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Store(inner) => inner.into(),
            ClientError::Process(inner) => inner.into(),
            ClientError::Socket { .. } | ClientError::NoAnswer { .. } => Self::of(Exit::UNAVAILABLE, &error),
            ClientError::Refused(_) => Self::of(Exit::FAILED, &error),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let exit = match &error {
            ConfigError::Io { .. } => Exit::UNAVAILABLE,
            ConfigError::Bad { .. } => Exit::BAD_DATA,
        };
        Self::of(exit, &error).hint("put it right, or move it away: without it the defaults hold")
    }
}

impl From<ProcessError> for Failure {
    fn from(error: ProcessError) -> Self {
        Self::of(Exit::FAILED, &error)
    }
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        let hint = match &error {
            ServiceError::NotOurs { .. } => {
                Some("--autostart chooses another way; --autostart none writes none of your files")
            }
            ServiceError::Changed { .. } => Some("run it again: it reads the file anew"),
            ServiceError::Read { .. }
            | ServiceError::Write { .. }
            | ServiceError::LineEnd { .. }
            | ServiceError::Call { .. } => None,
        };
        let failure = Self::of(Exit::FAILED, &error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<Unanswered> for Failure {
    fn from(error: Unanswered) -> Self {
        let exit = match &error {
            Unanswered::Refused { .. } | Unanswered::Io { .. } | Unanswered::TooLong { .. } => Exit::FAILED,
            Unanswered::NoServer { .. }
            | Unanswered::Unreachable { .. }
            | Unanswered::ProtocolMismatch { .. }
            | Unanswered::Timeout { .. }
            | Unanswered::NoBinary => Exit::UNAVAILABLE,
        };
        Self::of(exit, &error)
    }
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::Store(inner) => inner.into(),
            DriverError::Process(inner) => inner.into(),
            DriverError::Io { .. } => {
                Self::of(Exit::UNAVAILABLE, &error).hint("`ait doctor` says what is in the way")
            }
        }
    }
}

impl From<LookError> for Failure {
    fn from(error: LookError) -> Self {
        match error {
            LookError::List(ListError::Unanswered(inner)) | LookError::Unanswered(inner) => inner.into(),
            LookError::Process(inner) => inner.into(),
            LookError::List(ListError::Bad(_)) | LookError::Identity { .. } => {
                Self::of(Exit::UNAVAILABLE, &error)
            }
        }
    }
}

impl From<TakeError> for Failure {
    fn from(error: TakeError) -> Self {
        match error {
            TakeError::Store(inner) => inner.into(),
            TakeError::NoAnswer => Self::of(Exit::INTERNAL, &error),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let mut failure = Self::of(Exit::FAILED, &error);
        if error.kind() == io::ErrorKind::BrokenPipe {
            failure.exit = Exit::OK;
            failure.quiet = true;
        }
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read /a/b")]
    struct Outer(#[source] io::Error);

    #[test]
    fn the_causes_stand_in_one_line() {
        let outer = Outer(io::Error::other("the disk is gone"));
        let failure = Failure::of(Exit::BAD_DATA, &outer).hint("mount it");
        assert_eq!(failure.to_string(), "ait: cannot read /a/b: the disk is gone\nhint: mount it\n");
        assert_eq!(failure.exit, Exit::BAD_DATA);
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(failure.quiet);
        assert_eq!(failure.exit, Exit::OK);
    }
}
