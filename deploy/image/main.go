// Command image writes the container image of a release, for each platform one, as an OCI layout. It needs no container engine and
// no base image: the image holds the static binary, Mozilla's certificate authorities as golang.org/x/crypto has them, and a user.
// The same binaries give the same image.
//
//	go run . LAYOUT VERSION OS/ARCH=BINARY...
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: image LAYOUT VERSION OS/ARCH=BINARY...")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func write(dir, version string, platforms []string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, each := range platforms {
		name, path, found := strings.Cut(each, "=")
		platform, err := v1.ParsePlatform(name)
		if err != nil || !found {
			return fmt.Errorf("%q is not OS/ARCH=BINARY", each)
		}
		binary, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		image, err := build(*platform, version, binary)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	_, err := layout.Write(dir, index)
	return err
}

const user = "65532" // as distroless images have it

func build(platform v1.Platform, version string, binary []byte) (v1.Image, error) {
	roots, err := authorities()
	if err != nil {
		return nil, err
	}
	base, err := layer(
		file{"etc/passwd", 0o644, []byte("root:x:0:0::/:/sbin/nologin\nnonroot:x:" + user + ":" + user + "::/:/sbin/nologin\n")},
		file{"etc/group", 0o644, []byte("root:x:0:\nnonroot:x:" + user + ":\n")},
		file{"etc/ssl/certs/ca-certificates.crt", 0o644, roots},
	)
	if err != nil {
		return nil, err
	}
	program, err := layer(file{"usr/bin/tidemark", 0o755, binary})
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, base, program); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Config = v1.Config{
		User: user + ":" + user, WorkingDir: "/",
		Entrypoint: []string{"/usr/bin/tidemark"}, Cmd: []string{"run"},
		Env:          []string{"PATH=/usr/bin"},
		ExposedPorts: map[string]struct{}{"9321/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "tidemark",
			"org.opencontainers.image.version":  version,
			"org.opencontainers.image.source":   "https://github.com/tidemarkhq/tidemark",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

type file struct {
	name string
	mode int64
	text []byte
}

// layer holds files of root, all of the same time, with the folders above them.
func layer(files ...file) (v1.Layer, error) {
	var text bytes.Buffer
	archive := tar.NewWriter(&text)
	made := map[string]bool{}
	header := func(h tar.Header) error {
		h.ModTime, h.Format = time.Unix(0, 0), tar.FormatPAX
		return archive.WriteHeader(&h)
	}
	for _, f := range files {
		for i, c := range f.name {
			if folder := f.name[:i]; c == '/' && !made[folder] {
				made[folder] = true
				if err := header(tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755}); err != nil {
					return nil, err
				}
			}
		}
		err := header(tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.text))})
		if err == nil {
			_, err = archive.Write(f.text)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// authorities are those that need no further constraint: a file of certificates cannot express one.
func authorities() ([]byte, error) {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return all.Bytes(), nil
}
