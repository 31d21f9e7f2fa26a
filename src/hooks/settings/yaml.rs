//! Hermes' `config.yaml`: one marked block at its end, every other byte as it was. A file that has hooks of its own is not
//! edited: where in them ours would go cannot be told without disturbing them.

use saphyr::{LoadableYamlNode, Yaml};

use super::own::is_own;

const BEGIN: &str = "# >>> ait hooks";
const END: &str = "# <<< ait hooks";
/// Said where the file had no line end of its own.
const JOINED: &str = "# >>> ait hooks, behind a line that had no end";

/// The text with these entries of ours (event, command) and no other of ours.
///
/// # Errors
/// Why it cannot be edited, as a lower-case fragment.
pub(super) fn with(text: &str, wanted: &[(&str, String)]) -> Result<String, String> {
    let bare = without(text)?;
    let newline = if bare.contains("\r\n") { "\r\n" } else { "\n" };
    if has_hooks(&bare)? {
        return Err("it has hooks of its own; add ours to them by hand".to_owned());
    }
    let mut block = String::new();
    let joined = !bare.is_empty() && !bare.ends_with('\n');
    if joined {
        block.push_str(newline);
    }
    let mut lines = vec![if joined { JOINED.to_owned() } else { BEGIN.to_owned() }, "hooks:".to_owned()];
    for (event, command) in wanted {
        let command = serde_json::to_string(command).map_err(|wrong| wrong.to_string())?;
        lines.push(format!("  {event}:"));
        lines.push(format!("    - command: {command}"));
        lines.push("      timeout: 5".to_owned());
    }
    lines.push(END.to_owned());
    for line in lines {
        block.push_str(&line);
        block.push_str(newline);
    }
    let made = bare + &block;
    if has_hooks(&made)? { Ok(made) } else { Err("it is of a form that is not understood".to_owned()) }
}

/// The text without our block.
///
/// # Errors
/// The block was edited by somebody else, or begins and does not end.
pub(super) fn without(text: &str) -> Result<String, String> {
    let Some(begin) = text.find(BEGIN) else { return Ok(text.to_owned()) };
    let length = text[begin..].find(END).ok_or("its block of ours has no end")?;
    let block = &text[begin..begin + length];
    let foreign = block.lines().skip(1).any(|line| {
        let line = line.trim();
        let command = line.strip_prefix("- command: ").map(serde_json::from_str::<String>);
        match command {
            Some(command) => !command.is_ok_and(|command| is_own(&command)),
            None => !(line.ends_with(':') || line == "timeout: 5" || line.is_empty()),
        }
    });
    if foreign {
        return Err("its block of ours holds what is not ours".to_owned());
    }
    let rest = &text[begin + length + END.len()..];
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest);
    let mut before = &text[..begin];
    if block.starts_with(JOINED) {
        before = before.strip_suffix("\r\n").or_else(|| before.strip_suffix('\n')).unwrap_or(before);
    }
    Ok(format!("{before}{rest}"))
}

fn has_hooks(text: &str) -> Result<bool, String> {
    let all = Yaml::load_from_str(text).map_err(|wrong| format!("it does not parse: {wrong}"))?;
    match all.as_slice() {
        [] => Ok(false),
        [only] if only.is_null() => Ok(false),
        [only] if only.is_mapping() => Ok(only.as_mapping_get("hooks").is_some()),
        _ => Err("it is no single table of settings".to_owned()),
    }
}
