module github.com/fake-apiserver/fake-apiserver/packages/go/fakeapiserver

go 1.24
