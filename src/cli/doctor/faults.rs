//! tmux's own faults, which versions have them, and what each means here.
//!
//! Measured on 3.2a, 3.3a, 3.4, 3.5a, 3.6b, 3.7c and the development tree; the issue numbers are tmux's own.

use tmux_control::Version;

use super::finding::Finding;

/// A fault of tmux.
struct Fault {
    /// Its short name.
    name: &'static str,
    /// The first version that has it.
    from: Version,
    /// The first version that no longer has it.
    until: Option<Version>,
    /// What it does.
    does: &'static str,
    /// What that means for a user of `ait`.
    here: &'static str,
}

const OLDEST: Version = Version::release(3, 2, None);

const FAULTS: &[Fault] = &[
    Fault {
        name: "R1",
        from: OLDEST,
        until: Some(Version::Next { major: 3, minor: 8 }),
        does: "the server crashes when a session's windows all close at once while any control client exists (#5243)",
        here: "a session that holds an agent under care is safe from it; one without, closed by exits alone while \
               several of its programs end in the same moment, is not",
    },
    Fault {
        name: "R2",
        from: OLDEST,
        until: Some(Version::release(3, 7, None)),
        does: "the server crashes when a control client switches the output of a busy pane off (#5054)",
        here: "ait never does; another control client may",
    },
    Fault {
        name: "R3",
        from: Version::release(3, 6, None),
        until: None,
        does: "the server crashes when a script opens two popups on a control client (#5551)",
        here: "give `display-popup` in scripts a client with -c",
    },
    Fault {
        name: "R4",
        from: OLDEST,
        until: Some(Version::release(3, 7, None)),
        does: "the server may crash when something happens while a control client attaches (#4980)",
        here: "ait attaches once in the life of a server",
    },
    Fault {
        name: "R5",
        from: OLDEST,
        until: Some(Version::Next { major: 3, minor: 8 }),
        does: "a control client that stops reading keeps the server from exiting (#5444)",
        here: "ait always reads, and hangs up when it cannot; a stopped supervisor (SIGSTOP) still does it",
    },
    Fault {
        name: "R6",
        from: OLDEST,
        until: None,
        does: "a control client that takes the output of panes and stalls makes the server grow or blocks the pane",
        here: "ait takes no output",
    },
    Fault {
        name: "R7",
        from: OLDEST,
        until: Some(Version::Next { major: 3, minor: 8 }),
        does: "what a hook of yours changes is not told to control clients",
        here: "ait learns of it within about a second",
    },
    Fault {
        name: "R8",
        from: OLDEST,
        until: None,
        does: "deaths and titles of panes in other sessions are not told to control clients",
        here: "ait learns of deaths from the processes themselves, of the rest within about a second",
    },
    Fault {
        name: "R10",
        from: Version::release(3, 3, None),
        until: Some(Version::release(3, 4, None)),
        does: "commands sent to a control client at once may run before it is attached",
        here: "ait waits for the first answer",
    },
    Fault {
        name: "R11",
        from: OLDEST,
        until: None,
        does: "the server crashes when another client ends while the last client of a session with destroy-unattached \
               has been told to leave and has not left yet (met on 3.3a)",
        here: "ait never sets that option: its hidden session ends by its own pane, its client is killed outright and dies with \
               the supervisor; a control client of another program in such a session of yours can meet it",
    },
];

/// A build with libutempter loses the end of a child until another child ends (#4559), up to 3.6.
const UTEMPTER_FIXED: Version = Version::release(3, 6, None);

/// What is said of this version.
pub(super) fn of(version: Version, has_utempter: Option<bool>) -> Vec<Finding> {
    let is_in = |fault: &&Fault| version >= fault.from && fault.until.is_none_or(|until| version < until);
    let mut all: Vec<Finding> = FAULTS
        .iter()
        .filter(is_in)
        .map(|fault| Finding::note("tmux", format!("{}: {}; {}", fault.name, fault.does, fault.here)))
        .collect();
    if version < UTEMPTER_FIXED && has_utempter != Some(false) {
        let sure =
            if has_utempter == Some(true) { "this build" } else { "this build, if it uses libutempter," };
        all.push(Finding::note(
            "tmux",
            format!(
                "R9: {sure} may show no exit status of a pane until another program of the server ends (#4559); ait \
                 learns of the end at once and makes tmux look for the status"
            ),
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str, has_utempter: Option<bool>) -> Vec<String> {
        let version = Version::parse(text.as_bytes()).unwrap();
        let name = |finding: Finding| finding.what.split(':').next().unwrap_or_default().to_owned();
        of(version, has_utempter).into_iter().map(name).collect()
    }

    #[test]
    fn each_version_has_its_faults() {
        for (version, has_utempter, faults) in [
            ("3.2a", Some(false), "R1 R2 R4 R5 R6 R7 R8 R11"),
            ("3.3a", Some(true), "R1 R2 R4 R5 R6 R7 R8 R10 R11 R9"),
            ("3.4", None, "R1 R2 R4 R5 R6 R7 R8 R11 R9"),
            ("3.6b", Some(true), "R1 R2 R3 R4 R5 R6 R7 R8 R11"),
            ("3.7c", Some(true), "R1 R3 R5 R6 R7 R8 R11"),
            ("next-3.8", Some(true), "R3 R6 R8 R11"),
        ] {
            assert_eq!(names(version, has_utempter).join(" "), faults, "{version}");
        }
    }
}
