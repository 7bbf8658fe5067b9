package main

// The embedded etcd, and the two operations that probes need from it: reading
// the revision, and compaction.

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

// compactRevKey is the key of the revision that kube-apiservers compacted
// (k8s.io/apiserver, storage/etcd3/compact.go). Since 1.34 the watch cache drops
// its snapshots by this key and not by etcd's own compaction, so both are
// needed.
const compactRevKey = "compact_rev_key"

// settleTime is the time until the watch cache has handled a compaction: it
// polls every 15 s (storage/cacher/compactor.go, compactorPollPeriod).
const settleTime = 16 * time.Second

type store struct {
	URL    string
	etcd   *embed.Etcd
	client *clientv3.Client
}

func startStore(s settings) (*store, error) {
	peerPort := 0
	if err := fillPorts(&peerPort); err != nil {
		return nil, err
	}
	clientURL := url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", s.etcdPort)}
	peerURL := url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", peerPort)}

	config := embed.NewConfig()
	config.Dir = filepath.Join(s.dataDir, "etcd")
	config.LogLevel = "fatal" // at "error" etcd logs its own shutdown as a failure
	config.UnsafeNoFsync = true
	config.ListenClientUrls = []url.URL{clientURL}
	config.AdvertiseClientUrls = []url.URL{clientURL}
	config.ListenPeerUrls = []url.URL{peerURL}
	config.AdvertisePeerUrls = []url.URL{peerURL}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	setProgressNotify(config, s.progressNotify)

	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
	case err := <-etcd.Err():
		return nil, err
	case <-time.After(time.Minute):
		etcd.Close()
		return nil, fmt.Errorf("not ready within a minute")
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{clientURL.String()}, DialTimeout: 10 * time.Second})
	if err != nil {
		etcd.Close()
		return nil, err
	}
	return &store{URL: clientURL.String(), etcd: etcd, client: client}, nil
}

// setProgressNotify sets the field whose name differs between etcd 3.5 of
// Kubernetes 1.33 and etcd 3.6 of later versions.
func setProgressNotify(config *embed.Config, interval time.Duration) {
	if interval == 0 {
		return
	}
	fields := reflect.ValueOf(config).Elem()
	for _, name := range []string{"WatchProgressNotifyInterval", "ExperimentalWatchProgressNotifyInterval"} {
		if field := fields.FieldByName(name); field.IsValid() {
			field.SetInt(int64(interval))
			return
		}
	}
}

func (s *store) Close() {
	s.client.Close()
	s.etcd.Close()
}

// Revision returns the current revision, and the last one compacted by the
// oracle or by a kube-apiserver.
func (s *store) Revision(ctx context.Context) (revision, compacted int64, err error) {
	response, err := s.client.Get(ctx, compactRevKey)
	if err != nil {
		return 0, 0, err
	}
	if len(response.Kvs) > 0 {
		compacted, err = strconv.ParseInt(string(response.Kvs[0].Value), 10, 64)
	}
	return response.Header.Revision, compacted, err
}

// Compact compacts at a revision (0: the current one), and waits until the old
// revisions are physically removed. Reads at that revision still work, older
// ones fail.
func (s *store) Compact(ctx context.Context, revision int64) (int64, error) {
	if revision == 0 {
		current, _, err := s.Revision(ctx)
		if err != nil {
			return 0, err
		}
		revision = current
	}
	if _, err := s.client.Put(ctx, compactRevKey, strconv.FormatInt(revision, 10)); err != nil {
		return 0, err
	}
	_, err := s.client.Compact(ctx, revision, clientv3.WithCompactPhysical())
	return revision, err
}

// RemovePeerLease removes the key with which a kube-apiserver (since 1.36)
// publishes its address to its peers. Its etcd lease of 15 s is not renewed with
// a quiet store, so it would expire during a probe.
func (s *store) RemovePeerLease(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		response, err := s.client.Delete(ctx, "/registry/peerserverleases/", clientv3.WithPrefix())
		if err != nil || response.Deleted > 0 {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
