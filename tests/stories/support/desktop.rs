//! A desktop of a story's own: a session bus, and the service there that shows notifications.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use zbus::OwnedVariant;

use super::run::Running;
use super::{DEADLINE, Home, wait_until};

/// Where notifications are asked for.
const PATH: &str = "/org/freedesktop/Notifications";
const NAME: &str = "org.freedesktop.Notifications";

/// A session bus, and who listens on it.
pub(crate) struct Desktop {
    socket: PathBuf,
    _bus: Running,
    shown: Shown,
    /// Dropped, it ends the service.
    service: Option<tokio::sync::oneshot::Sender<()>>,
}

/// What was shown: who asked for it, its summary, its body.
type Shown = Arc<Mutex<Vec<[String; 3]>>>;

struct Service(Shown);

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Service {
    #[expect(
        clippy::too_many_arguments,
        reason = "they are the method's of the Desktop Notifications Specification"
    )]
    fn notify(
        &self,
        app: String,
        _replaces: u32,
        _icon: String,
        summary: String,
        body: String,
        _actions: Vec<String>,
        _hints: HashMap<String, OwnedVariant>,
        _timeout: i32,
    ) -> u32 {
        let mut shown = self.0.lock().unwrap();
        shown.push([app, summary, body]);
        u32::try_from(shown.len()).unwrap()
    }
}

impl Desktop {
    /// A bus on which nobody shows notifications, and nobody can be asked to begin to.
    pub(crate) fn bare(home: &Home) -> Self {
        let (socket, settings) = (home.root().join("bus"), home.root().join("bus.conf"));
        let text = format!(
            "<busconfig><type>session</type><listen>unix:path={}</listen><auth>EXTERNAL</auth><policy context=\"default\">\
             <allow send_destination=\"*\"/><allow receive_sender=\"*\"/><allow own=\"*\"/></policy></busconfig>\n",
            socket.display()
        );
        std::fs::write(&settings, text).unwrap();
        let mut bus = home.command("dbus-daemon");
        bus.arg(format!("--config-file={}", settings.display())).args(["--nofork", "--nopidfile"]);
        let bus = Running::start(bus.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
        wait_until("the bus", DEADLINE, || std::os::unix::net::UnixStream::connect(&socket).ok());
        Self { socket, _bus: bus, shown: Shown::default(), service: None }
    }

    /// The variable by which it is found.
    pub(crate) fn variable(&self) -> (&'static str, String) {
        ("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", self.socket.display()))
    }

    /// From now on notifications are shown there.
    pub(crate) fn shows(&mut self) {
        let (service, address) = (Service(Arc::clone(&self.shown)), self.variable().1);
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let builder = zbus::connection::Builder::address(address.as_str());
                let builder = builder.name(NAME).serve_at(PATH, service);
                let _connection = builder.build().await.unwrap();
                ready.send(()).unwrap();
                // until the desktop is gone
                let _ = stopped.await;
            });
        });
        is_ready.recv_timeout(DEADLINE).expect("the service of notifications");
        self.service = Some(stop);
    }

    /// What was shown so far.
    pub(crate) fn shown(&self) -> Vec<[String; 3]> {
        self.shown.lock().unwrap().clone()
    }
}
