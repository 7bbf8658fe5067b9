module github.com/fake-apiserver/fake-apiserver/go/fakeapiserver

go 1.24
