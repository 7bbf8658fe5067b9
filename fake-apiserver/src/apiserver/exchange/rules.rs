//! Deviations of watch events before they are queued: dropped, repeated, reordered or changed.

use trace::record::FrameType;

use crate::model::WatchFrame;

/// Rules for the events of one watch.
#[derive(Debug, Default)]
pub(in crate::apiserver) struct EventRules {
    pub(super) drop: u32,
    pub(super) repeat: u32,
    pub(super) reorder: u32,
    pub(super) held: Vec<WatchFrame>,
    pub(super) no_bookmarks: bool,
    /// `Some(value)`: value of the `k8s.io/initial-events-end` annotation, or none.
    pub(super) end_marker: Option<Option<String>>,
}

/// Outcome for one event.
#[derive(Debug)]
pub(in crate::apiserver) enum Fate {
    /// Sent; `scripted` if it was repeated or moved.
    Send { frame: WatchFrame, scripted: bool },
    /// Never sent.
    Withhold(WatchFrame),
    /// Sent with another end marker.
    Remark {
        frame: WatchFrame,
        initial_events_end: Option<String>,
    },
}

impl EventRules {
    /// Whether every event is sent unchanged.
    pub(in crate::apiserver) fn leaves_unmodified(&self) -> bool {
        let untouched = self.drop == 0 && self.repeat == 0 && self.reorder == 0;
        untouched && !self.no_bookmarks && self.end_marker.is_none()
    }

    /// Applies the rules to one event. Returns the outcomes in the order to carry them out.
    pub(in crate::apiserver) fn decide(&mut self, frame: WatchFrame) -> Vec<Fate> {
        if let FrameType::Bookmark { initial_events_end } = &frame.kind {
            // A bookmark promises that every event before it was sent. The end marker releases held events first; any other
            // bookmark waits for the next interval.
            if !self.held.is_empty() && initial_events_end.is_none() {
                return Vec::new();
            }
            let mut fates = self.let_go();
            fates.extend(self.decide_bookmark(frame));
            return fates;
        }
        if frame.object.is_none() {
            let mut fates = self.let_go();
            fates.push(Fate::Send {
                frame,
                scripted: false,
            });
            return fates;
        }
        if self.drop > 0 {
            self.drop -= 1;
            return vec![Fate::Withhold(frame)];
        }
        if self.repeat > 0 {
            let copies = std::mem::take(&mut self.repeat);
            return (0..copies)
                .map(|copy| Fate::Send {
                    frame: frame.clone(),
                    scripted: copy > 0,
                })
                .collect();
        }
        if self.reorder > 0 {
            self.held.push(frame);
            self.reorder -= 1;
            if self.reorder > 0 {
                return Vec::new();
            }
            return self.let_go();
        }
        vec![Fate::Send {
            frame,
            scripted: false,
        }]
    }

    fn decide_bookmark(&self, frame: WatchFrame) -> Vec<Fate> {
        let FrameType::Bookmark { initial_events_end } = &frame.kind else {
            return Vec::new();
        };
        match (&self.end_marker, initial_events_end) {
            _ if self.no_bookmarks => Vec::new(),
            (Some(value), Some(_)) => vec![Fate::Remark {
                initial_events_end: value.clone(),
                frame,
            }],
            (_, _) => vec![Fate::Send {
                frame,
                scripted: false,
            }],
        }
    }

    /// Releases held events in reverse order: no further event will come.
    pub(in crate::apiserver) fn let_go(&mut self) -> Vec<Fate> {
        if !self.held.is_empty() {
            self.reorder = 0;
        }
        let held = std::mem::take(&mut self.held);
        let reversed = held.into_iter().rev();
        reversed
            .map(|frame| Fate::Send {
                frame,
                scripted: true,
            })
            .collect()
    }
}
