//! `ait store`: where the store lies, whether it is well, and putting it right when it is not.

use std::io::{IsTerminal, Write};

use clap::Parser;
use serde::Serialize;

use super::record::escaped;
use super::{Exit, Failure, print};
use crate::record::Stamp;
use crate::store::{Cure, Paths, Repair, Store};

/// Arguments of `ait store`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, clap::Subcommand)]
enum Act {
    /// Print where everything lies
    Path,
    /// Say whether the store is well; changes nothing
    Check,
    /// Show what would put a broken store right, and do it
    Repair {
        /// Only show
        #[arg(long)]
        dry_run: bool,
        /// Do it without asking
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Serialize)]
struct Places {
    store: String,
    previous: String,
    archive: String,
    frozen: String,
    state: String,
    runtime: String,
}

#[derive(Serialize)]
struct Told {
    well: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    bad: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cure: Option<String>,
    records: usize,
    repaired: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_aside: Option<String>,
}

/// Runs `ait store`.
pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    let store = Store::open(Paths::from_env().map_err(broken)?);
    match args.act {
        Act::Path => path(&store, args.json),
        Act::Check => check(&store, args.json),
        Act::Repair { dry_run, yes } => repair(&store, dry_run, yes, args.json),
    }
}

fn path(store: &Store, json: bool) -> Result<Exit, Failure> {
    let (paths, files) = (store.paths(), store.paths().files());
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let places = Places {
        store: text(&files.store),
        previous: text(&files.prev),
        archive: text(&files.archive),
        frozen: text(&paths.frozen),
        state: text(&paths.state),
        runtime: text(&paths.runtime),
    };
    if json {
        print::json(&places)?;
    } else {
        print::text(&format!(
            "store     {}\nprevious  {}\narchive   {}\nfrozen    {}\nstate     {}\nruntime   {}\n",
            escaped(&places.store),
            escaped(&places.previous),
            escaped(&places.archive),
            escaped(&places.frozen),
            escaped(&places.state),
            escaped(&places.runtime),
        ))?;
    }
    Ok(Exit::OK)
}

fn check(store: &Store, json: bool) -> Result<Exit, Failure> {
    let Some(repair) = store.diagnose().map_err(broken)? else {
        let records = store.read().map_err(broken)?.records.len();
        if json {
            print::json(&well(records))?;
        } else {
            print::text(&format!("the store is well: {records} record(s)\n"))?;
        }
        return Ok(Exit::OK);
    };
    if json {
        print::json(&told(&repair, None))?;
    } else {
        print::text(&words(&repair))?;
    }
    Ok(Exit::BAD_DATA)
}

fn repair(store: &Store, dry_run: bool, yes: bool, json: bool) -> Result<Exit, Failure> {
    let Some(repair) = store.diagnose().map_err(broken)? else {
        return check(store, json);
    };
    if !json {
        print::text(&words(&repair))?;
    }
    if !dry_run && !yes && !asked()? {
        let failure = Failure::new(Exit::BAD_DATA, "nothing was changed");
        return Err(failure.hint("`ait store repair --yes` does it without asking"));
    }
    let aside = if dry_run {
        None
    } else {
        let now = Stamp::from_unix(jiff::Timestamp::now().as_second());
        Some(store.repair(&repair, now).map_err(broken)?)
    };
    if json {
        print::json(&told(&repair, aside.as_deref()))?;
    } else if let Some(aside) = &aside {
        print::text(&format!("done; the broken file is kept as {}\n", escaped(&aside.to_string_lossy())))?;
    }
    Ok(Exit::OK)
}

fn asked() -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    print::text("Put it right? [y/N] ")?;
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn broken(error: crate::store::StoreError) -> Failure {
    use crate::store::StoreError::{BadRecords, Busy, Corrupt, Io, Newer, NoHome, NotOurs};
    match error {
        Corrupt { .. } | BadRecords { .. } => Failure::of(Exit::BAD_DATA, &error)
            .hint("neither generation reads: put the file right by hand, or move it away to begin anew"),
        Newer { .. } => Failure::of(Exit::BAD_DATA, &error).hint("a newer ait wrote it: use that one"),
        Busy { .. } => Failure::of(Exit::UNAVAILABLE, &error).hint("try again"),
        Io { .. } | NotOurs { .. } | NoHome => Failure::of(Exit::FAILED, &error),
    }
}

fn cure(repair: &Repair) -> String {
    match repair.cure {
        Cure::Cut(bytes) => format!("the {bytes} byte(s) after the end of the store are cut off"),
        Cure::Previous => "the generation before it is put back".to_owned(),
        Cure::Sift(0) => "the broken record(s) are left out".to_owned(),
        Cure::Sift(brought) => {
            format!(
                "the broken record(s) are left out, {brought} of them put back from the generation before"
            )
        }
    }
}

fn words(repair: &Repair) -> String {
    let mut text = String::new();
    if let Some(fault) = &repair.fault {
        text += &format!("the store is corrupt: {}\n", escaped(&fault.to_string()));
    }
    for bad in &repair.bad {
        text += &format!("broken record on line {}: {}\n", bad.line, escaped(&bad.reason));
    }
    text + &format!("repair: {}; {} record(s) then\n", cure(repair), repair.records.len())
}

fn told(repair: &Repair, aside: Option<&std::path::Path>) -> Told {
    Told {
        well: false,
        fault: repair.fault.as_ref().map(ToString::to_string),
        bad: repair.bad.iter().map(|bad| format!("line {}: {}", bad.line, bad.reason)).collect(),
        cure: Some(cure(repair)),
        records: repair.records.len(),
        repaired: aside.is_some(),
        kept_aside: aside.map(|path| path.to_string_lossy().into_owned()),
    }
}

fn well(records: usize) -> Told {
    Told { well: true, fault: None, bad: Vec::new(), cure: None, records, repaired: false, kept_aside: None }
}
