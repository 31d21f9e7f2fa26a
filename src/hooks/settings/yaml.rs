//! Hermes' `config.yaml`: marked blocks of ours, every other byte as it was. Without hooks of the user's own it is one block at the
//! file's end; else one behind the user's entries of each event, and one at the end of their `hooks:` for the other events.
//!
//! Lines are put in, nothing is printed anew. What was made is read again: it must hold all the user's settings as they were, and
//! ours where they belong. A form where that fails (hooks on one line, anchors …) is refused.

use saphyr::{LoadableYamlNode, Yaml};

use super::own::is_own;

const BEGIN: &str = "# >>> ait hooks";
const END: &str = "# <<< ait hooks";
/// Said where the file had no line end of its own.
const JOINED: &str = "# >>> ait hooks, behind a line that had no end";
/// Why a file is refused that cannot be edited safely.
const FORM: &str = "its hooks are of a form that is not understood; add ours to them by hand";

/// The text with these entries of ours (event, command) and no other of ours.
///
/// # Errors
/// Why it cannot be edited, as a lower-case fragment.
pub(super) fn with(text: &str, wanted: &[(&str, String)]) -> Result<String, String> {
    let bare = without(text)?;
    let newline = if bare.contains("\r\n") { "\r\n" } else { "\n" };
    let before = read(&bare)?;
    let has_hooks = before.as_ref().is_some_and(|all| all.as_mapping_get("hooks").is_some());
    let made = if has_hooks { among(&bare, newline, wanted)? } else { behind(&bare, newline, wanted)? };
    let holds = read(&made)?.is_some_and(|after| is_what_was_wanted(before.as_ref(), &after, wanted));
    if holds { Ok(made) } else { Err(FORM.to_owned()) }
}

/// Our block at the end.
fn behind(bare: &str, newline: &str, wanted: &[(&str, String)]) -> Result<String, String> {
    let joined = !bare.is_empty() && !bare.ends_with('\n');
    let mut made = bare.to_owned();
    if joined {
        made.push_str(newline);
    }
    let mut lines = vec!["hooks:".to_owned()];
    for (event, command) in wanted {
        lines.push(format!("  {event}:"));
        lines.extend(entry("    ", command)?);
    }
    let begin = if joined { JOINED } else { BEGIN };
    push(&mut made, newline, "", begin, lines);
    Ok(made)
}

/// Our blocks among the user's own hooks.
fn among(bare: &str, newline: &str, wanted: &[(&str, String)]) -> Result<String, String> {
    let lines: Vec<&str> = bare.split_inclusive('\n').collect();
    let is_top =
        |line: &&str| !line.starts_with([' ', '\t', '#', '\r', '\n', '-']) && !line.trim().is_empty();
    let tops = lines.iter().enumerate().filter(|(_, line)| is_top(line));
    let hooks = |line: &str| key(line).is_some_and(|(indent, key)| indent == 0 && key == "hooks");
    let mut own = tops.clone().filter(|(_, line)| hooks(line)).map(|(at, _)| at);
    let (Some(first), None) = (own.next(), own.next()) else { return Err(FORM.to_owned()) };
    let next = tops.map(|(at, _)| at).find(|at| *at > first).unwrap_or(lines.len());
    let end = content_end(&lines, first + 1, next);
    let children: Vec<(usize, &str)> =
        (first + 1..end).filter_map(|at| Some((at, key(lines[at])?.1))).collect();
    let indent = (first + 1..end).find_map(|at| Some(key(lines[at])?.0)).unwrap_or(2);
    let children: Vec<(usize, &str)> = children
        .into_iter()
        .filter(|(at, _)| key(lines[*at]).is_some_and(|(own, _)| own == indent))
        .collect();
    // what goes in before which line
    let mut inserts: Vec<(usize, String, Vec<String>)> = Vec::new();
    let mut others = Vec::new();
    for (event, command) in wanted {
        let Some(position) = children.iter().position(|(_, key)| key == event) else {
            others.push(format!("{}{event}:", " ".repeat(indent)));
            others.extend(entry(&" ".repeat(indent + 2), command)?);
            continue;
        };
        let from = children[position].0 + 1;
        let to = children.get(position + 1).map_or(end, |(at, _)| *at);
        let to = content_end(&lines, from, to);
        let items = (from..to).find(|at| lines[*at].trim_start().starts_with("- ")).ok_or(FORM)?;
        let deep = lines[items].len() - lines[items].trim_start().len();
        inserts.push((to, " ".repeat(deep), entry(&" ".repeat(deep), command)?));
    }
    if !others.is_empty() {
        inserts.push((end, " ".repeat(indent), others));
    }
    let mut made = String::new();
    for at in 0..=lines.len() {
        for (_, indent, lines) in inserts.iter().filter(|(before, ..)| *before == at) {
            let joined = !made.ends_with('\n');
            if joined {
                made.push_str(newline);
            }
            push(&mut made, newline, indent, if joined { JOINED } else { BEGIN }, lines.clone());
        }
        made.push_str(lines.get(at).copied().unwrap_or_default());
    }
    Ok(made)
}

/// The indentation and the key of a line `key:` of a block mapping.
fn key(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let (key, rest) = text.split_once(':')?;
    let rest = rest.trim();
    let plain = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (plain && (rest.is_empty() || rest.starts_with('#'))).then_some((indent, key))
}

/// The end of the lines `from..to` without the blank ones and the comments that stand before what follows.
fn content_end(lines: &[&str], from: usize, to: usize) -> usize {
    let holds = |at: &usize| {
        let line = lines[*at].trim();
        !line.is_empty() && !line.starts_with('#')
    };
    (from..to).rev().find(holds).map_or(from, |last| last + 1)
}

fn entry(indent: &str, command: &str) -> Result<Vec<String>, String> {
    let command = serde_json::to_string(command).map_err(|wrong| wrong.to_string())?;
    Ok(vec![format!("{indent}- command: {command}"), format!("{indent}  timeout: 5")])
}

fn push(made: &mut String, newline: &str, indent: &str, begin: &str, lines: Vec<String>) {
    for line in [format!("{indent}{begin}")].into_iter().chain(lines).chain([format!("{indent}{END}")]) {
        made.push_str(&line);
        made.push_str(newline);
    }
}

/// Whether `after` is `before` with each wanted command once, behind the user's own of that event.
fn is_what_was_wanted(before: Option<&Yaml<'_>>, after: &Yaml<'_>, wanted: &[(&str, String)]) -> bool {
    let own = before.and_then(|all| all.as_mapping_get("hooks"));
    let Some(made) = after.as_mapping_get("hooks") else { return false };
    let is_other = |(key, _): &(&Yaml<'_>, &Yaml<'_>)| key.as_str() != Some("hooks");
    let is_wanted = |event: &Yaml<'_>| wanted.iter().any(|(name, _)| event.as_str() == Some(*name));
    let new =
        wanted.iter().filter(|(event, _)| own.is_none_or(|own| own.as_mapping_get(event).is_none())).count();
    pairs(before).filter(is_other).eq(pairs(Some(after)).filter(is_other))
        && pairs(Some(made)).count() == pairs(own).count() + new
        && pairs(own)
            .filter(|(event, _)| !is_wanted(event))
            .all(|pair| pairs(Some(made)).any(|other| other == pair))
        && wanted.iter().all(|(event, command)| {
            let theirs = own.and_then(|own| own.as_mapping_get(event));
            let all = made.as_mapping_get(event).and_then(Yaml::as_sequence);
            let Some((last, rest)) = all.and_then(|list| list.split_last()) else { return false };
            let before = theirs.and_then(Yaml::as_sequence).map_or(&[][..], |list| &list[..]);
            rest == before && last.as_mapping_get("command").and_then(Yaml::as_str) == Some(command)
        })
}

fn pairs<'a, 'y>(all: Option<&'a Yaml<'y>>) -> impl Iterator<Item = (&'a Yaml<'y>, &'a Yaml<'y>)> {
    all.and_then(Yaml::as_mapping).into_iter().flatten()
}

/// The text without our blocks.
///
/// # Errors
/// A block was edited by somebody else, or begins and does not end.
pub(super) fn without(text: &str) -> Result<String, String> {
    let mut text = text.to_owned();
    while let Some(begin) = text.find(BEGIN) {
        let length = text[begin..].find(END).ok_or("its block of ours has no end")?;
        let block = &text[begin..begin + length];
        if !is_ours(block) {
            return Err("its block of ours holds what is not ours".to_owned());
        }
        let rest = &text[begin + length + END.len()..];
        let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest);
        // the block's own indentation goes with it
        let mut before = text[..begin].trim_end_matches(' ');
        if block.starts_with(JOINED) {
            before = before.strip_suffix("\r\n").or_else(|| before.strip_suffix('\n')).unwrap_or(before);
        }
        text = format!("{before}{rest}");
    }
    Ok(text)
}

/// Whether a block, from its first marker on, holds nothing but entries of ours.
fn is_ours(block: &str) -> bool {
    block.lines().skip(1).all(|line| {
        let line = line.trim();
        match line.strip_prefix("- command: ").map(serde_json::from_str::<String>) {
            Some(command) => command.is_ok_and(|command| is_own(&command)),
            None => line.ends_with(':') || line == "timeout: 5" || line.is_empty(),
        }
    })
}

/// The settings; `None` where there are none yet.
fn read(text: &str) -> Result<Option<Yaml<'_>>, String> {
    let all = Yaml::load_from_str(text).map_err(|wrong| format!("it does not parse: {wrong}"))?;
    let mut all = all.into_iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(only), None) if only.is_null() => Ok(None),
        (Some(only), None) if only.is_mapping() => Ok(Some(only)),
        _ => Err("it is no single table of settings".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Vec<(&'static str, String)> {
        ["pre_llm_call", "post_llm_call"]
            .map(|event| (event, format!("/opt/ait hook {event} --provider hermes")))
            .into()
    }

    #[test]
    fn ours_stand_behind_the_users_and_go_without_a_trace() {
        for users in [
            "",
            "# nothing yet\n",
            "model: x",
            "hooks:\nmodel: x\n",
            "model: x   # mine\nhooks:\n  post_llm_call:\n    - command: say done\n",
            "hooks:\n  post_llm_call:\n  - command: say done   # at the key's own depth\n    timeout: 9\n\n# of the next\nmodel: x\n",
            "hooks:\n    other:\n        - command: a\n    # before the next\n    pre_llm_call:\n        - command: b\n        - command: |\n            c:\n              d\nmodel: x",
            "hooks:\r\n  pre_llm_call:\r\n    - command: b\r\nmodel: x\r\n",
            "a:\n  hooks:\n    x: 1\nhooks:\n  pre_llm_call:\n    - command: b",
        ] {
            let made = with(users, &wanted()).unwrap_or_else(|why| panic!("{users:?}: {why}"));
            assert_eq!(with(&made, &wanted()).as_deref(), Ok(&*made), "once is enough: {made}");
            assert_eq!(without(&made).as_deref(), Ok(users), "{made}");
            assert_eq!(made.matches("/opt/ait").count(), 2, "{made}");
        }
    }

    #[test]
    fn a_form_that_is_not_understood_is_refused() {
        for users in [
            "hooks: {post_llm_call: [{command: say done}]}\n",
            "hooks:\n  post_llm_call: [{command: say done}]\n",
            "hooks:\n  post_llm_call:\n    command: say done\n",
            "hooks: &mine\n  post_llm_call:\n    - command: say\n",
            "hooks:\n  \"post_llm_call\":\n    - command: say\n",
            "{hooks: {}}\n",
            "- a\n",
            "a: [\n",
        ] {
            assert!(with(users, &wanted()).is_err(), "{users:?}: {:?}", with(users, &wanted()));
        }
    }
}
