//! Assigns connections to the replicas behind one address, in turn, as a load balancer with health checks does.
//!
//! It must not know what a connection is used for.

use std::time::Duration;

use trace::record::Replica;

const REPLICAS: [Replica; 2] = [Replica::Primary, Replica::Secondary];

/// Two replicas behind one address.
#[derive(Debug, Default)]
pub(super) struct Balancer {
    /// Index of the replica that is next.
    next: usize,
    /// Time until which each accepts no connection.
    down_until: [Duration; 2],
}

impl Balancer {
    /// Returns the replica of the next connection, which is accepted at `now`.
    pub(super) fn assign(&mut self, now: Duration) -> Replica {
        if self.down_until[self.next] > now && self.down_until[1 - self.next] <= now {
            self.next = 1 - self.next;
        }
        let replica = REPLICAS[self.next];
        self.next = 1 - self.next;
        replica
    }

    /// Takes a replica out until `until`; `None`: both.
    pub(super) fn take_out(&mut self, replica: Option<Replica>, until: Duration) {
        for (index, one) in REPLICAS.into_iter().enumerate() {
            if replica.is_none_or(|replica| replica == one) {
                self.down_until[index] = self.down_until[index].max(until);
            }
        }
    }

    /// Time until which neither replica accepts connections.
    pub(super) fn refused_until(&self) -> Duration {
        self.down_until[0].min(self.down_until[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn connections_alternate_and_avoid_a_replica_that_is_down() {
        let mut balancer = Balancer::default();
        let mut at = |now| balancer.assign(AT(now)).word();
        assert_eq!([at(0), at(0), at(0)], ["primary", "secondary", "primary"]);
        balancer.take_out(Some(Replica::Secondary), AT(10));
        let mut at = |now| balancer.assign(AT(now)).word();
        assert_eq!([at(1), at(9), at(10)], ["primary", "primary", "secondary"]);
    }

    #[test]
    fn connections_are_refused_while_both_are_down() {
        let mut balancer = Balancer::default();
        balancer.take_out(Some(Replica::Primary), AT(10));
        assert_eq!(balancer.refused_until(), AT(0));
        balancer.take_out(None, AT(5));
        assert_eq!(balancer.refused_until(), AT(5));
    }
}
