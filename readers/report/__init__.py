"""Reports: charts as SVG and self-contained HTML pages."""
