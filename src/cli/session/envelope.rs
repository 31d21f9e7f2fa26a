//! How a session command answers: text, or one JSON object on one line, for success and failure alike.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::face::Face;
use super::{Format, Given};
use crate::cli::{Exit, Failure, print};
use crate::store::StoreError;

/// What a session command did: the data of its envelope, and the same for a person.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The envelope's `data`, as it is written.
    pub(super) data: Box<RawValue>,
    /// The text of `--format text`.
    pub(super) text: String,
    /// What is said besides.
    pub(super) warnings: Vec<String>,
    /// The exit code; 0 unless the command says otherwise.
    pub(super) exit: Exit,
}

impl Answer {
    /// An answer without warnings.
    pub(super) fn new(data: impl Serialize, text: impl Into<String>) -> Result<Self, Trouble> {
        let data = to_raw_value(&data)
            .map_err(|wrong| Trouble::new(Exit::INTERNAL, "serialization-failed", wrong.to_string()))?;
        Ok(Self { data, text: text.into(), warnings: Vec::new(), exit: Exit::OK })
    }
}

/// The line of an answer.
#[derive(Serialize)]
struct Envelope {
    schema_version: String,
    ok: bool,
    data: Box<RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Why a session command failed: a code for programs, words for a person.
#[derive(Debug)]
pub(crate) struct Trouble {
    code: &'static str,
    message: String,
    details: Map<String, Value>,
    /// What may be done about it; the earlier command line has none.
    hint: Option<String>,
    exit: Exit,
    /// It was met before any command was known.
    general: bool,
}

impl Trouble {
    /// A failure with its exit code, its code and a lower-case fragment.
    pub(super) fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Map::new(), hint: None, exit, general: false }
    }

    /// The same with one more detail.
    pub(super) fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// The same with what may be done about it.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Its exit code and its code.
    #[cfg(test)]
    pub(super) fn codes(&self) -> (Exit, &'static str) {
        (self.exit, self.code)
    }

    /// The same, as a failure of the call and not of its command.
    pub(super) fn of_no_command(mut self) -> Self {
        self.general = true;
        self
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        let code = match failure.exit() {
            Exit::USAGE => "usage",
            Exit::BAD_DATA => "bad-data",
            Exit::UNAVAILABLE => "unavailable",
            Exit::INTERNAL => "internal",
            _ => "failed",
        };
        let hint = failure.advice().map(str::to_owned);
        Self { hint, ..Self::new(failure.exit(), code, failure.message()) }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::Corrupt { .. } | StoreError::BadRecords { .. } => "store-corrupt",
            StoreError::Newer { .. } => "store-newer",
            StoreError::Busy { .. } => "store-busy",
            StoreError::Io { .. } | StoreError::NotOurs { .. } | StoreError::NoHome => "store-failed",
        };
        Self { code, ..Self::from(Failure::from(error)) }
    }
}

/// Runs a session command and says what came of it.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn say(
    command: &str,
    given: &Given,
    done: impl FnOnce() -> Result<Answer, Trouble>,
) -> Result<Exit, Failure> {
    given.here.choose_tmux();
    let done = done();
    let face = Face::ours();
    match (given.format, done) {
        (Format::Text, Ok(answer)) => {
            for warning in &answer.warnings {
                say_to_stderr("warning", warning);
            }
            print::text(&answer.text)?;
            Ok(answer.exit)
        }
        (Format::Json, Ok(Answer { data, warnings, exit, text: _ })) => {
            print::json_line(&Envelope { schema_version: face.schema(command), ok: true, data, warnings })?;
            Ok(exit)
        }
        (format, Err(trouble)) => refuse(face, command, format, trouble),
    }
}

/// Says a failure in the format that was asked for.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn refuse(face: Face, command: &str, format: Format, trouble: Trouble) -> Result<Exit, Failure> {
    let Trouble { code, message, details, hint, exit, general } = trouble;
    let hint = hint.filter(|_| face == Face::Ait);
    match format {
        Format::Text => {
            say_to_stderr("error", &message);
            if let Some(hint) = &hint {
                say_to_stderr("hint", hint);
            }
        }
        Format::Json => {
            let mut error = json!({"code": code, "message": message});
            if let (Some(error), false) = (error.as_object_mut(), details.is_empty()) {
                error.insert("details".to_owned(), details.into());
            }
            if let (Some(error), Some(hint)) = (error.as_object_mut(), hint) {
                error.insert("hint".to_owned(), hint.into());
            }
            let schema = face.schema(if general { "error" } else { command });
            print::json_line(&json!({"schema_version": schema, "ok": false, "error": error}))?;
        }
    }
    Ok(exit)
}

/// Says in JSON what the parser refused, where the words ask for JSON anywhere; else nothing, and the parser speaks for itself.
pub(crate) fn unparsed(
    wrong: &clap::Error,
    arguments: &[std::ffi::OsString],
) -> Option<Result<Exit, Failure>> {
    let words = || arguments.iter().skip(1).filter_map(|word| word.to_str()).map(str::to_ascii_lowercase);
    let pairs = words().zip(words().skip(1));
    let asked = words().any(|word| word == "--format=json")
        || pairs.into_iter().any(|(one, two)| one == "--format" && two == "json");
    if !asked {
        return None;
    }
    let code = match wrong.kind() {
        clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion => return None,
        clap::error::ErrorKind::InvalidSubcommand => "unknown-subcommand",
        _ => "parse-error",
    };
    let said = wrong.render().to_string();
    let line = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let message = line.strip_prefix("error:").unwrap_or(line).trim();
    let trouble = Trouble::new(Exit::USAGE, code, message).of_no_command();
    Some(refuse(Face::ours(), "error", Format::Json, trouble))
}

fn say_to_stderr(what: &str, message: &str) {
    use std::io::Write;
    // with standard error closed there is nobody left to tell
    let _ = writeln!(std::io::stderr(), "{what}: {}", message.replace('\n', " "));
}
