"""Reports: charts as SVG (`chart`, drawn on `axes`) and self-contained HTML pages (`page`)."""
