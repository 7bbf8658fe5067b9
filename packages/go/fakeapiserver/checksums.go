// `cargo xtask dist` writes this file for a release.

package fakeapiserver

// release is the URL of the folder with the archives of this version.
const release = "https://github.com/fake-apiserver/fake-apiserver/releases/download/v0.1.0"

// archives of this version, by GOOS/GOARCH, with their SHA-256 digests. In a checkout there are none.
var archives = []archive{}
