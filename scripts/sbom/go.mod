module github.com/tidemarkhq/tidemark/scripts/sbom

go 1.26

require github.com/CycloneDX/cyclonedx-go v0.12.0
