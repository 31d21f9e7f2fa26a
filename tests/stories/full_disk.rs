//! A disk without room, at every step of a freeze and of a restore: no agent is ended without its screen on disk, no
//! conversation comes twice, and with room again all goes on.

use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sched::{CloneFlags, unshare};

use crate::freeze::outcome;
use crate::support::{DEADLINE, Fake, Home, Ran, Supervisor, Tmux, not_run, wait_until};

/// Room that is left, in KiB: for nothing, for half a capture, for one but not for the store, and so on.
const ROOMS: [u64; 8] = [0, 4, 8, 12, 16, 20, 28, 40];

/// A disk of 1 MiB under the folder of the store and the captures.
struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// Leaves this much room.
    #[track_caller]
    fn fill(&self, kib: u64) {
        let filler = self.filler();
        let of = format!("of={}", filler.display());
        // its own end is that the disk is full
        Ran::run(Command::new("dd").args(["if=/dev/zero", &of, "bs=4k", "count=1000"]));
        let file = std::fs::OpenOptions::new().write(true).open(&filler).unwrap();
        let size = file.metadata().unwrap().len();
        file.set_len(size.saturating_sub(kib * 1024)).unwrap();
    }

    /// All its room again.
    #[track_caller]
    fn free(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        Ran::run(Command::new("umount").arg("-l").arg(&self.folder));
    }
}

/// Runs a story on a thread that has mounts of its own, as everything it starts has.
fn on_small_disk(story: impl FnOnce(&Home, &Disk) + Send + 'static) {
    let thread = std::thread::spawn(move || {
        let home = Home::new();
        if let Err(why) = unshare(CloneFlags::CLONE_NEWNS) {
            return not_run(&format!("no mounts of its own: {why}"));
        }
        let Some(disk) = mounted(&home.home().join(".config")) else { return not_run("no private mount") };
        story(&home, &disk);
    });
    if let Err(why) = thread.join() {
        std::panic::resume_unwind(why);
    }
}

fn mounted(folder: &Path) -> Option<Disk> {
    let apart = Ran::run(Command::new("mount").args(["--make-rprivate", "/"]));
    let mount = ["-t", "tmpfs", "-o", "size=1m,mode=0700", "ait-story"];
    let mount = Ran::run(Command::new("mount").args(mount).arg(folder));
    let disk = Disk { folder: folder.to_owned() };
    (apart.status.success() && mount.status.success()).then_some(disk)
}

/// The names of the record's capture files.
fn captures(home: &Home, id: &str) -> Vec<String> {
    let folder = home.home().join(".config/aitasks/frozen").join(id);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn on_a_full_disk_nothing_is_ended_unkept_and_with_room_again_all_goes_on() {
    on_small_disk(|home, disk| {
        home.hooked("claude");
        let tmux = Tmux::start(home);
        let mut agent = Fake::claude(&tmux, "main", "cart", &home.project("alpha"));
        agent.prompt(&tmux, "hello");
        let conversation = agent.conversation();
        let id = agent.adopt(&tmux);
        let _supervisor = Supervisor::start(home, &[&tmux]);
        let mut frozen = 0;
        for room in ROOMS {
            let process = agent.process();
            disk.fill(room);
            let ran = home.ait(["freeze", &id, "--json"]);
            let told = outcome(&ran);
            let record = home.record(&id).expect("its record");
            if ran.status.code() != Some(0) {
                assert_eq!(record["state"], "live", "room for {room} KiB: {told} {record:#}");
                assert_eq!(record["op_nonce"], "", "room for {room} KiB: {told} {record:#}");
                assert!(process.alive(), "room for {room} KiB: {told}");
                assert_eq!(
                    tmux.format(&agent.pane.id, "#{@aitask_frozen}"),
                    "",
                    "room for {room} KiB: {told}"
                );
                assert!(told["detail"].as_str().unwrap().contains("No space left"), "it says why: {told}");
                if told["word"] == "capture_failed" {
                    assert!(captures(home, &id).is_empty(), "half a capture: {:?}", captures(home, &id));
                }
                disk.free();
                continue;
            }
            frozen += 1;
            let path = record["capture_ansi"].as_str().unwrap();
            let kept = std::fs::read_to_string(path).unwrap();
            assert!(kept.contains("1, 0 earlier: hello"), "room for {room} KiB: {kept}");
            let first = home.ait(["restore", &id, "--json"]);
            disk.free();
            let record = home.store_until("the restore to be over", |home| {
                let record = home.record(&id)?;
                (record["op_nonce"] == "" && ["live", "frozen"].contains(&record["state"].as_str()?))
                    .then_some(record)
            });
            if record["state"] == "frozen" {
                assert!(!captures(home, &id).is_empty(), "room for {room} KiB: {first}");
                home.ait(["restore", &id, "--json"]).ok();
            }
            let record = home.record(&id).expect("its record");
            agent = agent.at(tmux
                .panes()
                .into_iter()
                .find(|pane| record["pane_id"] == pane.id.as_str())
                .unwrap());
            agent.ready(&tmux);
            assert_eq!(agent.conversation(), conversation);
            wait_until("the stand-in's stamp to go", DEADLINE, || {
                tmux.format(&agent.pane.id, "#{@aitask_frozen}").is_empty().then_some(())
            });
        }
        assert!(frozen > 0, "the last room is enough");
    });
}
