package main

// Generates the credentials of the oracle in a folder: a CA, a serving
// certificate for loopback, a service-account key and the token file.

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

type credentials struct {
	caFile, certFile, keyFile string
	serviceAccountKeyFile     string
	tokenFile                 string
	pool                      *x509.CertPool
}

func writeCredentials(dir string) (credentials, error) {
	none := credentials{}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return none, err
	}
	creds := credentials{
		caFile:                filepath.Join(dir, "ca.crt"),
		certFile:              filepath.Join(dir, "server.crt"),
		keyFile:               filepath.Join(dir, "server.key"),
		serviceAccountKeyFile: filepath.Join(dir, "service-account.key"),
		tokenFile:             filepath.Join(dir, "tokens.csv"),
		pool:                  x509.NewCertPool(),
	}

	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return none, err
	}
	from := time.Now().Add(-time.Hour)
	until := from.Add(10 * 365 * 24 * time.Hour)
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "oracle-ca"},
		NotBefore:             from,
		NotAfter:              until,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return none, err
	}
	caParsed, err := x509.ParseCertificate(caDER)
	if err != nil {
		return none, err
	}
	creds.pool.AddCert(caParsed)

	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return none, err
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "oracle-apiserver"},
		NotBefore:    from,
		NotAfter:     until,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, caParsed, serverKey.Public(), caKey)
	if err != nil {
		return none, err
	}
	serviceAccountKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return none, err
	}

	for file, der := range map[string][]byte{creds.caFile: caDER, creds.certFile: serverDER} {
		if err := writePEM(file, "CERTIFICATE", der); err != nil {
			return none, err
		}
	}
	for file, key := range map[string]*ecdsa.PrivateKey{creds.keyFile: serverKey, creds.serviceAccountKeyFile: serviceAccountKey} {
		der, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			return none, err
		}
		if err := writePEM(file, "EC PRIVATE KEY", der); err != nil {
			return none, err
		}
	}
	tokens := fmt.Sprintf("%s,admin,admin,system:masters\n%s,limited,limited\n", adminToken, limitedToken)
	return creds, os.WriteFile(creds.tokenFile, []byte(tokens), 0o600)
}

func writePEM(file, kind string, der []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
