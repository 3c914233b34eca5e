// Command sbom writes the bill of materials of a Go binary to standard output, as CycloneDX 1.6 in JSON: the modules that
// are compiled into the binary, with their versions and checksums, as the binary records them.
//
//	go run . BINARY VERSION
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY VERSION")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(path, version string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	info.Main.Version = version // Go records a version only for a module from a proxy
	root, err := component(cdx.ComponentTypeApplication, &info.Main)
	if err != nil {
		return err
	}
	parts := []cdx.Component{{
		Type: cdx.ComponentTypeLibrary, Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
		BOMRef: "std", PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
	}}
	needs := []string{"std"}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c, err := component(cdx.ComponentTypeLibrary, m)
		if err != nil {
			return err
		}
		parts, needs = append(parts, c), append(needs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &root}
	bom.Components = &parts
	// The binary does not record which module depends on which.
	bom.Dependencies = &[]cdx.Dependency{{Ref: root.BOMRef, Dependencies: &needs}}
	return cdx.NewBOMEncoder(os.Stdout, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
}

// component describes a module. Go's checksum of a module (h1) is a SHA-256 of the names and hashes of its files.
func component(kind cdx.ComponentType, m *debug.Module) (cdx.Component, error) {
	ref := fmt.Sprintf("pkg:golang/%s@%s", m.Path, m.Version)
	c := cdx.Component{Type: kind, Name: m.Path, Version: m.Version, BOMRef: ref, PackageURL: ref}
	if sum, found := strings.CutPrefix(m.Sum, "h1:"); found {
		raw, err := base64.StdEncoding.DecodeString(sum)
		if err != nil {
			return c, fmt.Errorf("%s: checksum %q: %w", m.Path, m.Sum, err)
		}
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
	}
	return c, nil
}
