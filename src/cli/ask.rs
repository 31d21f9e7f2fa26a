//! A question on the terminal before something is changed.

use std::io::{self, BufRead, IsTerminal, Write};

use super::{Exit, Failure};

/// Asks `question` where a person can answer; elsewhere refuses, so that no script changes anything by accident.
///
/// `true` for `y` or `yes`; anything else, and the end of input, is no.
pub(super) fn whether(question: &str) -> Result<bool, Failure> {
    let (input, mut output) = (io::stdin(), io::stderr());
    if !input.is_terminal() {
        return Err(Failure::new(Exit::USAGE, "nobody can be asked here, so nothing was changed")
            .hint("say --yes to do it, or --dry-run to only see it"));
    }
    write!(output, "{question} [y/N] ")?;
    output.flush()?;
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
