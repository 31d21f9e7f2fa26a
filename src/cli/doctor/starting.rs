//! How the supervisor is started with the machine: set up, once, by a path that leads to this program.

use std::path::Path;

use super::finding::Finding;
use crate::cli::print::shown;
use crate::cli::setup::diff::shown_path;
use crate::service::{self, Found, Place};

/// What is set up, and what is wrong with it.
pub(super) fn check(place: &Place, own: Option<&Path>) -> (Vec<Finding>, Vec<Found>) {
    let found = match service::found(place) {
        Ok(found) => found,
        Err(wrong) => return (vec![Finding::bad("autostart", wrong.to_string())], Vec::new()),
    };
    let mut all = Vec::new();
    if found.is_empty() {
        let what = "the supervisor is not started with the machine";
        all.push(Finding::note("autostart", what).hint("`ait setup` arranges it"));
    }
    if found.len() > 1 {
        let places: Vec<String> = found.iter().map(place_of).collect();
        all.push(
            Finding::bad("autostart", format!("it is set up {} times: {}", found.len(), places.join(", ")))
                .hint("`ait setup` leaves one"),
        );
    }
    all.extend(found.iter().map(|one| program(one, own)));
    (all, found)
}

fn place_of(found: &Found) -> String {
    format!("{}:{}", shown_path(&found.path), found.line)
}

fn program(found: &Found, own: Option<&Path>) -> Finding {
    let (word, place) = (found.autostart.word(), place_of(found));
    let Some(program) = &found.program else {
        return Finding::bad("autostart", format!("{place} cannot be read: {}", shown(&found.text)))
            .hint("`ait setup` writes it anew");
    };
    let shown = shown_path(program);
    let runs = rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok() && program.is_file();
    if !runs {
        return Finding::bad(
            "autostart",
            format!("{word}: {place} starts {shown}, which is not there to be run"),
        )
        .hint("`ait setup` puts this program's path there");
    }
    let same = own.is_none_or(|own| {
        program.canonicalize().is_ok_and(|real| own.canonicalize().is_ok_and(|own| own == real))
    });
    if same {
        Finding::good("autostart", format!("{word}: {place} starts {shown}"))
    } else {
        Finding::bad(
            "autostart",
            format!("{word}: {place} starts {shown}, which is another program than this one"),
        )
        .hint("`ait setup` puts this program's path there")
    }
}
