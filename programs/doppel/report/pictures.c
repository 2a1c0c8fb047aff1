/* pictures.c - pictures as SVG. Positions are in percent of the picture's width and lines are drawn in a stretched
 * inner picture, so that a picture is as wide as its container and its text has the size of other text. */
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers ---- */

/* A count in at most four characters: 950, 1.2K, 34K, 5.6M. */
static void short_count(uint64_t count, char text[16]) {
    static const char units[] = "KMGTPE";
    double size = (double)count;
    int unit = -1;
    for (; size >= 999.5; unit++)
        size /= 1000;
    if (unit < 0)
        snprintf(text, 16, "%llu", (unsigned long long)count);
    else
        snprintf(text, 16, size < 9.95 ? "%.1f%c" : "%.0f%c", size, units[unit]);
}

/* ---- bars ---- */

/* The heights in pixels: counts above, bars, labels below. */
enum { ABOVE = 18, TALL = 130, BELOW = 22 };

static void write_bar(html *page, const bar *b, double left, double width, uint64_t most) {
    double height = most ? TALL * (double)b->count / (double)most : 0;
    char count[16];
    if (b->count && height < 2)
        height = 2;
    short_count(b->count, count);
    html_put(page, "<g><title>");
    html_string(page, b->title);
    html_put(page, "</title>");
    html_format(page, "<rect class=\"hit\" x=\"%.3f%%\" y=\"0\" width=\"%.3f%%\" height=\"%d\"/>", left, width,
                ABOVE + TALL);
    html_format(page, "<rect class=\"%s\" x=\"%.3f%%\" y=\"%.1f\" width=\"%.3f%%\" height=\"%.1f\" rx=\"2\"/>",
                b->apart ? "part0" : "bar", left + width * 0.12, ABOVE + TALL - height, width * 0.76, height);
    html_format(page, "<text class=\"count\" x=\"%.3f%%\" y=\"%.1f\">%s</text>", left + width / 2,
                ABOVE + TALL - height - 5, b->count ? count : "");
    html_format(page, "<text x=\"%.3f%%\" y=\"%d\">", left + width / 2, ABOVE + TALL + 16);
    html_string(page, b->label);
    html_put(page, "</text></g>");
}

void picture_bars(html *page, const char *name, const bar *bars, size_t count) {
    uint64_t most = 0;
    /* Few bars are not wider than those of a picture of six. */
    double width = 100.0 / (double)(count < 6 ? 6 : count);
    for (size_t i = 0; i < count; i++)
        most = bars[i].count > most ? bars[i].count : most;
    html_format(page, "<svg class=\"picture\" role=\"img\" width=\"100%%\" height=\"%d\"><title>",
                ABOVE + TALL + BELOW);
    html_string(page, name);
    html_put(page, "</title>");
    for (size_t i = 0; i < count; i++)
        write_bar(page, &bars[i], width * (double)i, width, most);
    html_format(page, "<line class=\"axis\" x1=\"0\" x2=\"100%%\" y1=\"%d\" y2=\"%d\"/></svg>", ABOVE + TALL,
                ABOVE + TALL);
}

/* ---- parts ---- */

void picture_parts(html *page, const char *name, const uint64_t *part, size_t count) {
    uint64_t sum = 0;
    double left = 0;
    for (size_t i = 0; i < count; i++)
        sum += part[i];
    html_put(page, "<svg class=\"parts\" role=\"img\" width=\"100%\" height=\"28\"><title>");
    html_string(page, name);
    html_put(page, "</title>");
    for (size_t i = 0; i < count; i++) {
        double width = sum ? 100 * (double)part[i] / (double)sum : 0;
        if (part[i])
            html_format(page, "<rect class=\"part%zu\" x=\"%.4f%%\" y=\"0\" width=\"%.4f%%\" height=\"28\"/>", i, left,
                        width);
        left += width;
    }
    html_put(page, "</svg>");
}

void picture_legend(html *page, const char *const names[][2], const uint64_t *part, size_t count, uint64_t whole) {
    html_put(page, "<ul class=\"legend\">");
    for (size_t i = 0; i < count; i++) {
        if (!part[i])
            continue;
        html_format(page,
                    "<li><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><rect class=\"part%zu\" width=\"12\" "
                    "height=\"12\" rx=\"3\"/></svg><span>",
                    i);
        html_count(page, part[i], names[i][0], names[i][1]);
        html_format(page, " (%.1f %%)</span></li>", percent_of(part[i], whole));
    }
    html_put(page, "</ul>");
}

void picture_share(html *page, double share) {
    html_put(page, "<svg class=\"share\" aria-hidden=\"true\" width=\"100%\" height=\"8\">");
    html_format(page, "<rect class=\"bar\" width=\"%.3f%%\" height=\"8\" rx=\"2\"/></svg>", 100 * share);
}

/* ---- the curve ---- */

/* The plot inside its picture: in percent of the width, and in pixels. */
enum { PLOT_LEFT = 13, PLOT_WIDTH = 84, PLOT_TOP = 12, PLOT_TALL = 190, PLOT_STEPS = 100 };

static double found(int bands, int rows, double similarity) {
    return 1 - pow(1 - pow(similarity, rows), bands);
}

static double across(double similarity) {
    return PLOT_LEFT + PLOT_WIDTH * similarity;
}

static void write_grid(html *page) {
    for (int i = 0; i <= 4; i++) {
        double y = PLOT_TOP + PLOT_TALL * (1 - i / 4.0);
        html_format(page, "<line class=\"%s\" x1=\"%d%%\" x2=\"%d%%\" y1=\"%.1f\" y2=\"%.1f\"/>", i ? "grid" : "axis",
                    PLOT_LEFT, PLOT_LEFT + PLOT_WIDTH, y, y);
        html_format(page, "<text class=\"side\" x=\"%d%%\" y=\"%.1f\">%d %%</text>", PLOT_LEFT - 2, y + 4, 25 * i);
    }
    for (int i = 0; i <= 5; i++)
        html_format(page, "<text x=\"%.2f%%\" y=\"%d\">%.1f</text>", across(i / 5.0), PLOT_TOP + PLOT_TALL + 18,
                    i / 5.0);
}

static void write_line(html *page, int bands, int rows) {
    html_format(page,
                "<svg x=\"%d%%\" y=\"%d\" width=\"%d%%\" height=\"%d\" viewBox=\"0 0 100 100\" "
                "preserveAspectRatio=\"none\" overflow=\"visible\"><path class=\"curve\" d=\"",
                PLOT_LEFT, PLOT_TOP, PLOT_WIDTH, PLOT_TALL);
    for (int i = 0; i <= PLOT_STEPS; i++)
        html_format(page, "%c%d %.3f", i ? 'L' : 'M', i, 100 * (1 - found(bands, rows, (double)i / PLOT_STEPS)));
    html_put(page, "\"/></svg>");
}

void picture_curve(html *page, int bands, int rows, double threshold) {
    double share = found(bands, rows, threshold);
    html_format(page, "<svg class=\"picture\" role=\"img\" width=\"100%%\" height=\"%d\">", PLOT_TOP + PLOT_TALL + 26);
    html_format(page,
                "<title>The share of pairs that become candidates, by their similarity: %.2f %% at the threshold of "
                "%g</title>",
                100 * share, threshold);
    write_grid(page);
    html_format(page, "<line class=\"threshold\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\"/>", across(threshold),
                across(threshold), PLOT_TOP, PLOT_TOP + PLOT_TALL);
    write_line(page, bands, rows);
    html_format(page, "<circle class=\"point\" cx=\"%.2f%%\" cy=\"%.1f\" r=\"4\"/>", across(threshold),
                PLOT_TOP + PLOT_TALL * (1 - share));
    html_put(page, "</svg>");
}
