//! A question on the terminal before something is changed.

use std::io::{self, BufRead, IsTerminal, Write};

use super::{Exit, Failure};

/// Shows a numbered list of `count` lines and asks for one of them: its place from 0, or `None` for anything else. To be called only
/// where a person can answer.
pub(super) fn which(list: &str, count: usize) -> Result<Option<usize>, Failure> {
    let mut output = io::stderr();
    write!(output, "{list}Which one? [1-{count}] ")?;
    output.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let number = answer.trim().parse::<usize>().ok();
    Ok(number.and_then(|number| number.checked_sub(1)).filter(|at| *at < count))
}

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
